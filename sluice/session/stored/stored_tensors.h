// Tensors in files, known by their headers, and blocks of them that are read from the places where they lie.
//
// A model that fits on no host is started from its files: each process reads the bytes of its own devices'
// blocks and no others.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/base/thread.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/stored/source_files.h"

namespace sluice::sessions {

// A part of a tensor whose elements are next to each other in a file, row-major.
struct StoredPiece {
  std::string file;                 // a path, or the URL of an object or of a file on a web server
  uint64_t begin = 0;               // the first byte in the file
  std::vector<int64_t> start = {};  // where the part begins in the tensor
  std::vector<int64_t> sizes = {};
  // The checksum of the part's bytes, if an index has it. It is compared when a block has all of the part.
  std::optional<uint32_t> crc32c = std::nullopt;
};

struct StoredTensor {
  at::ScalarType type = at::ScalarType::Undefined;
  std::vector<int64_t> sizes = {};
  std::vector<StoredPiece> pieces = {};
};
using StoredTensors = std::map<std::string, StoredTensor>;

// Compares the checksum of a part's bytes with the index's, if it has one. kDataLoss names the tensor, the
// file and the place.
base::Status compare_checksum(const std::string& name, const StoredPiece& piece, uint32_t crc32c);

// A block of a stored tensor.
struct StoredBox {
  std::string name;  // the tensor's, for errors
  const StoredTensor* tensor = nullptr;
  std::vector<int64_t> start = {}, sizes = {};
  at::ScalarType type = at::ScalarType::Undefined;  // of the result: elements are converted on the way
};

// What a reader has read of the tensors' data; headers and indexes do not count.
struct StoredReads {
  int64_t requests = 0;  // reads of files, or requests to a server
  int64_t bytes = 0;     // of the files
  int64_t needed = 0;    // the part of `bytes` that blocks consist of
};

struct StoredReadOptions {
  // Neighbouring ranges are read together while bytes read ÷ bytes needed stays at or below this.
  double waste = 1.25;
  uint64_t range_bytes = uint64_t{128} << 20;  // longer ranges are cut
  int in_flight = 16;                          // ranges of a bucket or web server that are read at once
};

// Errors name the file and the tensor. Files belong to strangers: sizes, offsets and names are checked before
// they are used. A file that is replaced between two calls is kDataLoss. Threads: one at a time; a read uses
// threads of its own.
class StoredReader {
 public:
  explicit StoredReader(const StoredReadOptions& options = {});
  ~StoredReader();
  StoredReader(const StoredReader&) = delete;
  StoredReader& operator=(const StoredReader&) = delete;

  // Lists the tensors of a safetensors file; of a folder with model.safetensors, with
  // model.safetensors.index.json and the files that it names, or with a checkpoint; or of such a file or
  // folder in a bucket (gs://, s3://, az://, hf://) or such a file on a web server. An index may only name
  // files of its own folder, which have the tensors that it promises; no two files have the same tensor.
  // An index of pieces (pieces/piece_index.h) gives the whole tensors; its files must be of its save.
  // kUnimplemented for a file that Python's torch.save wrote: read_weights() reads it whole.
  base::Result<StoredTensors> list(const std::string& from);

  // Reads blocks, each into a contiguous CPU tensor. kDataLoss if a tensor's pieces leave a part of a block
  // out or give it twice, or lie outside of their files. Ranges of one file are joined across blocks.
  base::Result<std::vector<at::Tensor>> read(const std::vector<StoredBox>& boxes);
  base::Result<at::Tensor> read(const StoredBox& box);

  StoredReads reads() const;

 private:
  base::Result<StoredTensors> list_file(const std::string& file);
  base::Result<StoredTensors> list_index(const std::string& index);
  // Lists the files in the folder of an index. Each must have the tensors with these names.
  base::Result<StoredTensors> list_files(const std::map<std::string, std::set<std::string>>& files,
                                         const std::string& index);

  const StoredReadOptions options_;
  SourceFiles files_;
  std::map<std::string, std::string> saves_;  // of the files that were listed (pieces/piece_index.h)
  std::unique_ptr<base::ThreadPool> threads_;
  std::atomic<int64_t> requests_{0}, bytes_{0}, needed_{0};
};

// Reads all tensors of what StoredReader::list() takes, whole, in the order of their names.
base::Result<NamedTensors> read_all_stored(const std::string& from);

}  // namespace sluice::sessions
