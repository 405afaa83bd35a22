// Explains why new programs are compiled: which of the user's operations changed, where it is called, how it
// changed, the cost and the remedy.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sluice/device/program/program.h"

namespace sluice::device {

// The programs of one boundary, or of one place that reads values. The caller holds the trace's lock, here
// and below.
struct ProgramSite {
  ProgramPtr last;
  std::string place;  // the place of a read, once it has been looked up
  int64_t programs = 0;
  double seconds = 0;                     // the time that compiling them took
  std::map<std::string, int64_t> causes;  // the number of new programs that each caused
};

// Returns the site of a cut at this boundary; for a host read, the site of the place that reads now.
ProgramSite& site_of(std::string_view what);
void forget_sites();

// Notes that this plan needs a new program. From a site's third program on, warns: at each cause's first
// occurrence, and each time its count has doubled.
void report_new_program(ProgramSite& site, const Trace& trace, const Plan& plan, std::string_view what);

// Notes that an operation whose result has a shape that depends on values (masked_select) made a result of
// this length.
void note_value_shape(std::string_view operation, int64_t length);

// Returns the name as it is written in a program: "masked_select" for "aten::masked_select.out".
std::string written_name(std::string_view row);

}  // namespace sluice::device
