// The values of options that are written as short texts, such as 0.1% or 10:13. recipe/parsed.h reads the
// texts; text_of() returns one from which the same value is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/length_shape.h"
#include "sluice/mesh/mesh.h"

SLUICE_API_BEGIN

namespace sluice::train {

// The most bad samples of an epoch that may be left out.
struct MaxBad {
  double amount = 0.1;  // samples, or per cent of an epoch's samples
  bool percent = true;
  // Returns the number that data::WebDataset::max_bad() takes: a share below 1, or whole samples.
  double limit() const;
  bool operator==(const MaxBad&) const = default;
};

// The steps to profile: [first, end) of a start of the run; both are 0 for none.
struct ProfileSteps {
  int64_t first = 0, end = 0;
  bool empty() const { return end == 0; }
  bool operator==(const ProfileSteps&) const = default;
};

inline constexpr char kFromLast[] = "auto";
// The checkpoint from which a run continues.
struct Resume {
  bool from_last = false;   // from the log folder's last checkpoint, if there is one
  std::string folder = {};  // else from this folder, or gs://…, s3://… or az://…; empty: from the start
  bool empty() const { return !from_last && folder.empty(); }
  bool operator==(const Resume&) const = default;
};

std::string text_of(const MaxBad& limit);                           // "0.1%"; "25" for samples
std::string text_of(const ProfileSteps& steps);                     // "10:13"; "" for none
std::string text_of(const Mesh& mesh);                              // "data=2,fsdp=4"; "" for none
std::string text_of(const Resume& resume);                          // kFromLast, or the folder; "" for none
std::string text_of(const std::vector<data::LengthShape>& shapes);  // "16x512,32x256"

}  // namespace sluice::train

SLUICE_API_END
