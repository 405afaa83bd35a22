// The conversion of weights from one kind of file to another.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::sessions {

struct ExportOptions {
  // The most bytes of tensors in one file of a folder; a larger tensor has a file of its own. 5 GB.
  uint64_t part_bytes = uint64_t{4768} << 20;
};

struct ExportReport {
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the tensors
  int64_t files = 0;  // with tensors
};

// Returns whether export_weights() writes `to` as one file: its name ends in .safetensors, .pt, .pth or .bin.
bool exports_one_file(const std::string& to);

// Writes the weights at `from`, which is as for read_weights() (files/weights.h) and StoredReader::list(), to
// `to`, of this machine or in a bucket:
// - .pt, .pth or .bin: a file for Python's torch.load(weights_only=True). The host holds all of the weights;
// - .safetensors: one such file;
// - any other name: a folder of transformers. It has model.safetensors, or the parts
//   model-0000I-of-0000N.safetensors and model.safetensors.index.json, and the configuration and tokenizer
//   that are in the folder of `from`; of these, files that the folder has already stay.
// Safetensors are copied in small parts, so the host needs no room for the weights, and their checksums are
// compared on the way. A file of Python's torch.save is read whole.
//
// A new folder appears complete or not at all. In an existing folder and in a bucket the file that makes the
// others weights, the index, comes last. An error leaves nothing that was written. Throws sluice::Error:
// kAlreadyExists for a folder that has weights, kInvalidArgument for the folder of `from` itself.
ExportReport export_weights(const std::string& from, const std::string& to,
                            const ExportOptions& options = {});

}  // namespace sluice::sessions
