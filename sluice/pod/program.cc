#include "sluice/pod/program.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/pod/program_text.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::pod {
namespace {

using Take = std::function<base::Status(std::string_view)>;

class File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  // Fills the buffer as far as the file goes; less than 0: an error, in errno.
  ssize_t read(std::vector<char>& buffer) const {
    ssize_t count;
    while ((count = ::read(descriptor_, buffer.data(), buffer.size())) < 0 && errno == EINTR) {
    }
    return count;
  }

 private:
  int descriptor_;
};

// Passes on the file's bytes, and the unpacked bytes.
base::Status read_packed(const std::string& path, const Take& packed, const Take& unpacked) {
  const File file(path);
  if (!file.is_open()) return base::fail_errno(errno, "open", path);
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          &ZSTD_freeDStream);
  std::vector<char> input(ZSTD_DStreamInSize()), output(ZSTD_DStreamOutSize());
  size_t status = 1;  // 0: at the end of a frame
  ssize_t count;
  while ((count = file.read(input)) > 0) {
    SLUICE_OK(packed({input.data(), static_cast<size_t>(count)}));
    ZSTD_inBuffer in{input.data(), static_cast<size_t>(count), 0};
    bool is_full = false;  // if true, the decoder may hold more
    while (in.pos < in.size || is_full) {
      ZSTD_outBuffer out{output.data(), output.size(), 0};
      status = ZSTD_decompressStream(stream.get(), &out, &in);
      if (ZSTD_isError(status) != 0)
        return base::fail(Code::kDataLoss, path, " is damaged: ", ZSTD_getErrorName(status));
      is_full = out.pos == out.size;
      SLUICE_OK(unpacked({output.data(), out.pos}));
    }
  }
  if (count < 0) return base::fail_errno(errno, "read", path);
  if (status != 0) return base::fail(Code::kDataLoss, path, " is damaged: it ends in the middle");
  return {};
}

// Checks the names in a tar archive that comes in pieces.
class TarNames {
 public:
  void add(std::string_view bytes) {
    while (!bytes.empty() && !is_over_) {
      const size_t skipped = std::min<uint64_t>(skip_, bytes.size());
      skip_ -= skipped;
      bytes.remove_prefix(skipped);
      const size_t taken = std::min(kBlock - header_.size(), bytes.size());
      header_ += bytes.substr(0, taken);
      bytes.remove_prefix(taken);
      if (header_.size() == kBlock) take_header();
    }
  }
  // is_tar(): whether it was a tar archive; has_bin(): whether it has TOP/bin/ for a top folder TOP.
  bool is_tar() const { return is_tar_; }
  bool has_bin() const { return has_bin_; }

 private:
  static constexpr size_t kBlock = 512;

  void take_header() {
    const std::string name = header_.substr(0, header_.find('\0'));
    if (header_.compare(257, 5, "ustar") != 0) {
      is_over_ = true;  // the end, or not a tar archive
      return;
    }
    is_tar_ = true;
    const uint64_t size = std::strtoull(header_.substr(124, 12).c_str(), nullptr, 8);
    skip_ = (size + kBlock - 1) / kBlock * kBlock;
    // Entries of other kinds (x, g, L) describe the next entry.
    const std::string_view path = std::string_view(name).substr(name.starts_with("./") ? 2 : 0);
    const bool is_file = std::string_view("05").find(header_[156]) != std::string_view::npos;
    const size_t slash = path.find('/');
    if (is_file && slash != std::string_view::npos && path.substr(slash).starts_with("/bin")) has_bin_ = true;
    header_.clear();
  }

  std::string header_;
  uint64_t skip_ = 0;
  bool is_over_ = false, is_tar_ = false, has_bin_ = false;
};

// Compares the checksum with PATH.sha256, in the form of sha256sum.
base::Status compare_with_file(const Program& program) {
  const std::string path = program.path + ".sha256";
  if (!base::path_exists(path)) return {};
  SLUICE_TRY(const std::string text, base::read_file(path));
  const std::string expected = text.substr(0, text.find_first_of(" \n"));
  if (expected == program.sha256) return {};
  return base::fail(Code::kDataLoss, program.path, " is damaged, or not the archive that ", path,
                    " is about: its SHA-256 is ", program.sha256, ", expected ", expected,
                    ". Copy both again");
}

}  // namespace

base::Result<Program> check_program(const std::string& path) {
  if (base::is_directory(path))
    return base::fail(Code::kInvalidArgument, path,
                      " is a folder: expected an archive, as `make dist` writes it (a folder: --sync)");
  Program program{path, "", 0, "", 0};
  base::Sha256 packed_sum, unpacked_sum;
  TarNames names;
  const auto packed = [&](std::string_view bytes) -> base::Status {
    constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd";
    if (program.bytes == 0 && !bytes.starts_with(kMagic))
      return base::fail(Code::kInvalidArgument, path,
                        " is not packed with zstd: expected a .tar.zst archive, ",
                        "as `make dist` writes it");
    program.bytes += bytes.size();
    packed_sum.add(bytes);
    return {};
  };
  const auto unpacked = [&](std::string_view bytes) -> base::Status {
    program.tar_bytes += bytes.size();
    unpacked_sum.add(bytes);
    names.add(bytes);
    return {};
  };
  const base::Status read = read_packed(path, packed, unpacked);
  program.sha256 = base::hexadecimal(packed_sum.finish());
  program.tar_sha256 = base::hexadecimal(unpacked_sum.finish());
  SLUICE_OK(read);
  SLUICE_OK(compare_with_file(program));
  if (!names.is_tar() || !names.has_bin())
    return base::fail(Code::kInvalidArgument, path,
                      names.is_tar() ? " has no FOLDER/bin" : " holds no tar archive",
                      ": expected one folder with bin/ in it, as `make dist` writes it");
  return program;
}

base::Status unpack_program(const Program& program, const std::string& to) {
  SLUICE_TRY(auto file, base::AtomicFile::create(to));
  SLUICE_OK(read_packed(
      program.path, [](std::string_view) { return base::Status(); },
      [&](std::string_view bytes) { return file.write(bytes); }));
  return file.commit();
}

std::string program_script(const Program& program) {
  return base::str("sum=", program.sha256, "\nsize=", program.bytes, "\ntar_sum=", program.tar_sha256,
                   "\ntar_size=", program.tar_bytes, '\n', kProgramText);
}

}  // namespace sluice::pod
