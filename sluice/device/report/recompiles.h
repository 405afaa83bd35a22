// Why one program after another is compiled: which operation of the user's changed, where it is called, how,
// what it costs and what helps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sluice/device/program.h"

namespace sluice::device {

// The programs of one boundary, or of one place that reads values. The caller holds the trace's lock, here
// and below.
struct ProgramSite {
  ProgramPtr last;
  std::string place;  // of a read, once it was looked up
  int64_t programs = 0;
  double seconds = 0;                     // of compiling them
  std::map<std::string, int64_t> causes;  // how often each made a new program necessary
};

// That of a cut at this boundary; for a host read that of the place that reads now.
ProgramSite& site_of(std::string_view what);
void forget_sites();

// This plan needs a new program. From the third of a site on a warning says so: for each cause once, and when
// it has come twice as often.
void report_new_program(ProgramSite& site, const Trace& trace, const Plan& plan, std::string_view what);

// An operation whose result has a shape that depends on values (masked_select) gave one of this length.
void note_value_shape(std::string_view operation, int64_t length);

// "masked_select" of "aten::masked_select.out": as it is written in a program.
std::string written_name(std::string_view row);

}  // namespace sluice::device
