// Runs verbs in a test as the program does.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/cli/verb.h"

namespace sluice::cli::test {

struct Outcome {
  int status = 0;
  std::string out, err;
};

// Runs `sluice ARGUMENTS…` with these verbs.
inline Outcome sluice_program(const std::vector<Verb>& verbs, std::vector<std::string> arguments) {
  CLI::App app("", "sluice");
  arguments.insert(arguments.begin(), "sluice");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  Outcome outcome;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  outcome.status = parse_and_run(app, verbs, static_cast<int>(arguments.size()), words.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

}  // namespace sluice::cli::test
