#include "plenum/schedule/text/schedule_text.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/options.h"
#include "plenum/schedule/text/at_line.h"
#include "plenum/schedule/text/schedule_fields.h"
#include "plenum/schedule/text/step_text.h"

namespace plenum::schedule {
namespace {

constexpr std::string_view kMagic = "plenum-schedule";
constexpr std::string_view kTextVersion = "1";

/// The line without its comment and the blanks around it.
std::string_view content_of(std::string_view line) {
  for (std::size_t mark = line.find('#'); mark != std::string_view::npos; mark = line.find('#', mark + 1)) {
    if (mark > 0 && line[mark - 1] != ' ' && line[mark - 1] != '\t') continue;
    line = line.substr(0, mark);
    break;
  }
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
}

class TextReader {
 public:
  TextReader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Schedule run() {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      const std::string_view content = content_of(text_.substr(0, end));
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_number_;
      if (content.empty()) continue;
      at_line(source_, line_number_, [&] { read_line(content); });
    }
    at_line(source_, line_number_, [this] { finish(); });
    return std::move(schedule_);
  }

 private:
  void read_line(std::string_view line) {
    if (!has_magic_) return read_magic(line);
    if (line.front() >= '0' && line.front() <= '9') return read_row(line);
    const std::string_view name = take_word(line);
    if (name == "rank") return read_rank(line);
    read_field(name, line);
  }

  void read_magic(std::string_view line) {
    base::require(take_word(line) == kMagic, "a schedule begins with the line '{} {}'", kMagic, kTextVersion);
    const std::string_view version = take_word(line);
    base::require(version == kTextVersion && take_word(line).empty(),
                  "this is version '{}' of the format, not {}", version, kTextVersion);
    has_magic_ = true;
  }

  void read_field(std::string_view name, std::string_view rest) {
    const ScheduleField* field = schedule_field_named(name);
    if (field == nullptr) {
      std::vector<std::string> known = {"rank"};
      for (const ScheduleField& candidate : all_schedule_fields()) known.emplace_back(candidate.name);
      base::fail("unknown setting '{}'{}", name, base::suggest_name(name, known));
    }
    base::require(schedule_.ranks.empty(), "'{}' must stand before the ranks", name);
    base::require(seen_.insert(field).second, "'{}' is given twice", name);
    std::vector<std::string_view> words;
    if (field->kind == ScheduleField::Kind::Text) {
      words.push_back(content_of(rest));
    } else {
      for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest))
        words.push_back(word);
    }
    const std::size_t num_expected = field->kind == ScheduleField::Kind::Flag ? 0 : 1;
    base::require(field->kind == ScheduleField::Kind::Numbers ? !words.empty() : words.size() == num_expected,
                  "'{}' takes {}", name, num_expected == 0 ? "no value" : "a value");
    field->set(schedule_, words);
  }

  void read_rank(std::string_view rest) {
    base::require(!layers_, "the lines of the ranks must stand before the rows");
    const std::string_view number = take_word(rest);
    base::require(number == std::to_string(schedule_.ranks.size()), "'rank {} holds ...' expected: '{}'",
                  schedule_.ranks.size(), number);
    base::require(take_word(rest) == "holds", "'holds' expected after 'rank {}'", number);
    base::require(schedule_.num_stages() > 0, "'layers' must stand before the ranks");
    RankProgram rank;
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
      rank.stages.push_back(StageId::at(parse_count(word, "a stage", 0, schedule_.num_stages() - 1)));
    }
    schedule_.ranks.push_back(std::move(rank));
  }

  void read_row(std::string_view line) {
    end_header();
    const std::size_t colon = line.find(':');
    base::require(colon != std::string_view::npos, "a row begins with a rank, a lane and a colon");
    std::string_view head = line.substr(0, colon);
    const std::string_view number = take_word(head);
    const std::string_view lane_word = take_word(head);
    const std::uint64_t rank = parse_count(number, "the row's rank", 0, schedule_.ranks.size() - 1);
    const std::optional<Lane> lane = lane_named(lane_word);
    base::require(lane.has_value() && take_word(head).empty(),
                  "the lanes are compute, data, pipe and copy: '{}'", lane_word);
    RankProgram& program = schedule_.ranks[rank];
    base::require(program.lane(*lane).num_steps() == 0, "rank {} has a row for '{}' already", rank,
                  lane_word);
    std::string_view rest = line.substr(colon + 1);
    for (bool is_last = false; !is_last;) {
      const std::size_t bar = rest.find('|');
      is_last = bar == std::string_view::npos;
      parse_step_text(rest.substr(0, bar), schedule_.problem, *layers_, *lane, program);
      if (!is_last) rest.remove_prefix(bar + 1);
    }
    const std::size_t num_steps = program.lane(*lane).num_steps();
    if (num_steps_ == 0) num_steps_ = num_steps;
    base::require(num_steps == num_steps_, "the row has {} steps, but the first row has {}", num_steps,
                  num_steps_);
  }

  void end_header() {
    if (layers_) return;
    require_placed_problem(schedule_);
    layers_.emplace(schedule_.problem);
  }

  void finish() {
    base::require(has_magic_, "the file is empty; a schedule begins with the line '{} {}'", kMagic,
                  kTextVersion);
    end_header();
    base::require(num_steps_ > 0, "there are no rows of actions");
    fill_empty_lanes(num_steps_, schedule_);
    require_well_formed(schedule_);
  }

  std::string_view text_;
  std::string_view source_;
  std::size_t line_number_ = 0;
  bool has_magic_ = false;
  std::set<const ScheduleField*> seen_;
  std::optional<StageLayers> layers_;  ///< known once the header has ended
  std::size_t num_steps_ = 0;
  Schedule schedule_;
};

void append_row(std::size_t rank, Lane lane, const LaneProgram& program, const StageLayers& layers,
                std::string& text) {
  text += fmt::format("{} {}:", rank, lane_name(lane));
  for (std::size_t step = 0; step < program.num_steps(); ++step) {
    text += step == 0 ? " " : " | ";
    append_step_text(program.step(step), layers, text);
  }
  text += '\n';
}

}  // namespace

std::string print_schedule_text(const Schedule& schedule) {
  base::require(content_of(schedule.name) == schedule.name && schedule.name.find('\n') == std::string::npos,
                "the schedule's name does not fit on a line: '{}'", schedule.name);
  std::string text = fmt::format("{} {}\n", kMagic, kTextVersion);
  for (const ScheduleField& field : all_schedule_fields()) {
    const std::vector<std::string> words = field.get(schedule);
    if (words.empty()) continue;
    text += field.name;
    for (const std::string& word : words) {
      if (!word.empty()) text += ' ';
      text += word;
    }
    text += '\n';
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    text += fmt::format("rank {} holds", rank);
    for (const StageId stage : schedule.ranks[rank].stages) text += fmt::format(" {}", stage.value);
    text += '\n';
  }
  const StageLayers layers(schedule.problem);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
      const LaneProgram& program = schedule.ranks[rank].lanes[lane];
      if (!program.actions().empty()) append_row(rank, static_cast<Lane>(lane), program, layers, text);
    }
  }
  return text;
}

Schedule parse_schedule_text(std::string_view text, std::string_view source) {
  return TextReader(text, source).run();
}

}  // namespace plenum::schedule
