#pragma once

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace plenum::report {

/// Directories with what runs leave there, written by hand.
class MadeRuns : public testing::Test {
 protected:
  static std::string step_line(int step, double loss, int num_steps = 100) {
    return fmt::format(
        "{{\"step\":{},\"loss\":{},\"mlm_loss\":{},\"lr\":0.001,\"gradient_norm\":1.5,\"real_tokens\":900,"
        "\"padded_tokens\":100,\"sequences\":4,\"seconds\":0.5,\"tokens_per_second\":1800.0,\"flops\":1e9,"
        "\"skipped\":{},\"num_steps\":{},\"epoch\":{},\"wall_seconds\":{}}}\n",
        step, loss, loss, step == 7, num_steps, 0.01 * step, 0.6 * step);
  }

  static std::string steps(int count, int num_steps = 100) {
    std::string text;
    for (int step = 1; step <= count; ++step) text += step_line(step, 10.0 - 0.05 * step, num_steps);
    return text;
  }

  static std::string evaluation_line(int step, double loss, double accuracy) {
    return fmt::format(
        "{{\"step\":{},\"loss\":{},\"mlm_loss\":{},\"mlm_accuracy\":{},\"sequences\":10,\"masked_tokens\":70,"
        "\"seconds\":0.2,\"epoch\":0.1,\"wall_seconds\":{}}}\n",
        step, loss, loss, accuracy, 0.6 * step);
  }

  static std::string begin_line(int step, std::string_view kind = "begin") {
    return fmt::format(
        "{{\"step\":{},\"time\":1700000000.5,\"kind\":\"{}\",\"text\":\"\",\"product_flops\":4e9,"
        "\"machine\":{{\"cpu\":\"A <fast> processor\",\"cores\":2}},\"layout\":{{\"ranks\":2}},"
        "\"memory\":{{\"planned_bytes\":3000000,\"outside_bytes\":1000,\"lines\":[{{\"purpose\":"
        "\"parameters\",\"bytes\":2000000}},{{\"purpose\":\"gradients\",\"bytes\":1000000}}]}},"
        "\"lengths\":{{\"sequences\":100,\"tokens\":22500,\"max_length\":512,\"bin_width\":256,\"bins\":[60,"
        "40]"
        "}},\"packing\":{{\"capacity\":512,\"packs\":50,\"bound\":48,\"proof\":\"L2\",\"efficiency\":0.88,"
        "\"packs_of_depth\":[0,10,30,10]}},\"balance\":{{\"steps\":8,\"work_of_replica\":[1.01,0.99],"
        "\"busiest\":1.02}}}}\n",
        step, kind);
  }

  /// A run of so many steps; returns its directory.
  std::string make(const std::string& name, int num_done = 100) const {
    directory_.write(name + "/lock", "");
    directory_.write(name + "/config.toml",
                     "[run]\nsteps = \"100\"\nseed = 3\n[data]\nlayout = \"packed\"\n");
    directory_.write(name + "/metrics.jsonl", steps(num_done));
    directory_.write(name + "/evaluations.jsonl",
                     evaluation_line(50, 7.5, 0.2) + evaluation_line(100, 5.25, 0.4));
    directory_.write(
        name + "/events.jsonl",
        begin_line(0) + "{\"step\":7,\"time\":1700000002,\"kind\":\"skipped\",\"text\":\"loss nan\"}\n" +
            "{\"step\":100,\"time\":1700000060,\"kind\":\"finish\",\"text\":\"\",\"used_bytes\":4000000}\n");
    return directory_ / name;
  }

  test::TemporaryDirectory directory_;
};

}  // namespace plenum::report
