#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/control/credentials.h"
#include "plenum/control/handshake.h"
#include "plenum/control/latest_text.h"
#include "plenum/control/message.h"
#include "plenum/control/network_address.h"
#include "plenum/control/rendezvous_file.h"

#include "tests/support/expect_user_error.h"

namespace plenum::control {
namespace {

using ::testing::HasSubstr;

std::vector<Message> one_of_each() {
  return {Begin{},
          Heartbeat{"step 3"},
          Contribution{.kind = ExchangeKind::Gather, .number = 7, .bytes = std::string("a\0b", 3)},
          Outcome{.kind = ExchangeKind::Compare, .number = 8, .is_refusal = true, .bytes = "no"},
          FailureReport{"out of memory"},
          FailureNews{{.rank = {3}, .host = "n1", .what = "w", .last_action = "a", .others = "o"}},
          ClockPing{-5},
          ClockPong{.sent_ns = 1, .answered_ns = 2},
          Goodbye{},
          StatusRequest{}};
}

TEST(Message, IsReadAsItWasWritten) {
  const std::vector<Message> messages = one_of_each();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (const Message& message : messages) {
    const auto type = static_cast<std::uint8_t>(message.index());
    const std::string bytes = encode(message);
    EXPECT_EQ(parse(type, bytes), message) << message.index();
    const FrameHeader header{.type = type, .num_bytes = static_cast<std::uint32_t>(bytes.size())};
    EXPECT_EQ(parse_header(encode_header(header)), header);
  }
}

TEST(Message, IsRefusedWhenItIsShorterOrLongerThanItSays) {
  for (const Message& message : one_of_each()) {
    const auto type = static_cast<std::uint8_t>(message.index());
    const std::string bytes = encode(message);
    EXPECT_EQ(parse(type, bytes + "x"), std::nullopt) << message.index();
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_EQ(parse(type, bytes.substr(0, size)), std::nullopt) << message.index() << " " << size;
  }
}

TEST(Message, HasTextsCutToWhatTheyMayHave) {
  const std::string text(100'000, 'x');
  const auto heartbeat = parse(1, encode(Heartbeat{text}));
  ASSERT_TRUE(heartbeat.has_value());
  EXPECT_EQ(std::get<Heartbeat>(*heartbeat).status.size(), kMostStatusBytes);
  EXPECT_TRUE(
      parse(5, encode(FailureNews{{.host = text, .what = text, .last_action = text, .others = text}})));
}

TEST(FrameHeader, IsRefusedForUnknownTypesAndSizesThatNoMessageHas) {
  const auto header = [](std::uint8_t type, std::uint32_t num_bytes) {
    return parse_header(encode_header({.type = type, .num_bytes = num_bytes}));
  };
  EXPECT_TRUE(header(1, 516).has_value());
  EXPECT_FALSE(header(1, 517).has_value());
  EXPECT_FALSE(header(0, 1).has_value());
  EXPECT_FALSE(header(10, 0).has_value());
  EXPECT_FALSE(header(2, 0xffffffffU).has_value());
  EXPECT_FALSE(parse_header("short").has_value());
  EXPECT_FALSE(parse_header(std::string("\0\0\0\0\1\1\0\0", 8)).has_value());
}

struct Handshake {
  Key key = run_key("a secret", RunId{});
  Hello hello{.nonce = random_array<Nonce>()};
  Claim claim{.rank = {3}, .num_ranks = 8, .nonce = random_array<Nonce>(), .host = "node7"};
};

TEST(Handshake, HasTextsOfFixedSizesThatAreReadAsWritten) {
  Handshake it;
  sign(it.key, it.hello, it.claim);
  EXPECT_EQ(encode(it.hello).size(), Hello::kNumBytes);
  EXPECT_EQ(encode(it.claim).size(), Claim::kNumBytes);
  EXPECT_EQ(encode(Welcome{}).size(), Welcome::kNumBytes);
  const std::optional<Claim> claim = parse_claim(encode(it.claim));
  ASSERT_TRUE(claim.has_value());
  EXPECT_EQ(claim->host, "node7");
  EXPECT_TRUE(is_signed(it.key, it.hello, *claim));
  for (std::size_t size = 0; size < Claim::kNumBytes; ++size)
    EXPECT_FALSE(parse_claim(encode(it.claim).substr(0, size)).has_value());
}

TEST(Handshake, FailsWhenAnyBitIsChanged) {
  Handshake it;
  sign(it.key, it.hello, it.claim);
  const std::string bytes = encode(it.claim);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const std::optional<Claim> claim = parse_claim(changed);
    EXPECT_FALSE(claim && is_signed(it.key, it.hello, *claim)) << bit;
  }
}

TEST(Handshake, FailsWithAnotherSecretRunOrGreeting) {
  Handshake it;
  sign(it.key, it.hello, it.claim);
  EXPECT_FALSE(is_signed(run_key("another", RunId{}), it.hello, it.claim));
  EXPECT_FALSE(is_signed(run_key("a secret", RunId{1}), it.hello, it.claim));
  EXPECT_FALSE(is_signed(it.key, Hello{.nonce = random_array<Nonce>()}, it.claim));
}

TEST(Handshake, DoesNotTakeAClaimForAWelcome) {
  Handshake it;
  sign(it.key, it.hello, it.claim);
  Welcome welcome{.host = "node0"};
  welcome.mac = it.claim.mac;
  EXPECT_FALSE(is_signed(it.key, it.hello, it.claim, welcome));
  sign(it.key, it.hello, it.claim, welcome);
  EXPECT_TRUE(is_signed(it.key, it.hello, it.claim, welcome));
  welcome.answer = Answer::RankIsTaken;
  EXPECT_FALSE(is_signed(it.key, it.hello, it.claim, welcome));
}

TEST(Handshake, ShowsNothingOfTheSecret) {
  Handshake it;
  sign(it.key, it.hello, it.claim);
  EXPECT_EQ(encode(it.claim).find(as_bytes(it.key).substr(0, 8)), std::string::npos);
  EXPECT_NE(session_keys(it.key, it.hello, it.claim).to_rank_0,
            session_keys(it.key, it.hello, it.claim).from_rank_0);
}

TEST(FrameCipher, OpensOnlyWhatWasSealedAndInThatOrder) {
  const Key key = random_array<Key>();
  FrameCipher sending(key);
  std::string first;
  std::string second;
  sending.seal("head", "one", first);
  sending.seal("head", "two", second);
  EXPECT_EQ(first.find("one"), std::string::npos);
  FrameCipher receiving(key);
  std::string body;
  EXPECT_FALSE(receiving.open("head", second, body)) << "one was left out";
  EXPECT_FALSE(receiving.open("other", first, body));
  EXPECT_FALSE(receiving.open("head", first.substr(1), body));
  EXPECT_FALSE(receiving.open("head", "", body));
  EXPECT_EQ(body, "");
  ASSERT_TRUE(receiving.open("head", first, body));
  EXPECT_EQ(body, "one");
  EXPECT_FALSE(receiving.open("head", first, body)) << "one was repeated";
  EXPECT_TRUE(receiving.open("head", second, body));
}

TEST(RendezvousText, IsReadAsItWasWritten) {
  const Rendezvous place{.address = "::1", .port = 65535, .run = {1, 2, 255}, .secret = make_secret()};
  EXPECT_EQ(parse_rendezvous(rendezvous_text(place)), place);
}

TEST(RendezvousText, IsRefusedWhenItIsNotWhole) {
  const Rendezvous place{.address = "127.0.0.1", .port = 1, .run = {}, .secret = "s"};
  const std::string text = rendezvous_text(place);
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_FALSE(parse_rendezvous(text.substr(0, size)).has_value());
  for (const char* wrong :
       {"[]", "{}", "{\"format\": 1}", "{\"format\": \"plenum-control\", \"version\": 2}"})
    EXPECT_FALSE(parse_rendezvous(wrong).has_value());
  std::string other_port = text;
  other_port.replace(other_port.find("\"port\": 1"), 9, "\"port\": 70000");
  EXPECT_FALSE(parse_rendezvous(other_port).has_value());
}

TEST(LatestText, GivesOneWholeTextWhileOthersAreWritten) {
  LatestText text;
  EXPECT_EQ(text.read(), "");
  std::atomic<bool> is_over{false};
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b'}) {
    writers.emplace_back([&, letter] {
      for (std::size_t i = 0; !is_over; ++i) text.write(std::string(1 + i % 600, letter));
    });
  }
  for (int i = 0; i < 2000; ++i) {
    const std::string read = text.read();
    EXPECT_LE(read.size(), LatestText::kMostBytes);
    if (!read.empty()) {
      EXPECT_EQ(read, std::string(read.size(), read[0]));
    }
  }
  is_over = true;
  for (std::thread& writer : writers) writer.join();
}

TEST(ChooseAddress, TakesInterfacesAndAddressesOfThisHost) {
  EXPECT_EQ(choose_address("", true), "127.0.0.1");
  EXPECT_EQ(choose_address("lo", false), "127.0.0.1");
  EXPECT_EQ(choose_address("127.0.0.1", false), "127.0.0.1");
  test::expect_user_error([] { choose_address("no-such-card", false); },
                          "no network interface or address called no-such-card; it has the interfaces");
}

TEST(ChooseAddress, TakesOneThatOtherHostsCanReachByDefault) {
  try {
    const std::string address = choose_address("", false);
    EXPECT_FALSE(address.starts_with("127.")) << address;
    EXPECT_NO_THROW(listen_at(address));
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("name a network interface"));
  }
}

}  // namespace
}  // namespace plenum::control
