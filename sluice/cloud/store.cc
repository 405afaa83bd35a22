#include "sluice/cloud/store.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/storage.h"
#include "sluice/cloud/stores/azure.h"
#include "sluice/cloud/stores/hub.h"
#include "sluice/cloud/stores/s3.h"

namespace sluice::cloud {
namespace {

base::Result<Store*> shared_google() {
  SLUICE_TRY(Storage * storage, Storage::shared());
  return storage;
}

struct Scheme {
  std::string_view name;
  int parts;              // number of path parts that name the bucket
  std::string_view form;  // for messages
  base::Result<Store*> (*store)();
};

constexpr std::size_t kMaxChunks = 9000;  // S3 allows 10,000 parts of an object
constexpr std::size_t kChunkUnit = 256 << 10;
constexpr std::uint64_t kPieceInMemory = 1 << 20;

constexpr Scheme kSchemes[] = {
    {"gs", 1, "gs://BUCKET/NAME", shared_google},
    {"s3", 1, "s3://BUCKET/NAME", shared_s3},
    {"az", 2, "az://ACCOUNT/CONTAINER/NAME", shared_azure},
    {"hf", 2, "hf://datasets/OWNER/NAME[@REVISION]/FILE", shared_hub},
};

const Scheme* scheme_of(std::string_view url) {
  for (const Scheme& scheme : kSchemes)
    if (base::starts_with(url, scheme.name) && url.substr(scheme.name.size(), 3) == "://") return &scheme;
  return nullptr;
}

}  // namespace

bool is_gs(std::string_view url) { return base::starts_with(url, "gs://"); }

bool is_object_url(std::string_view url) { return scheme_of(url) != nullptr; }

base::Status check_written_name(const ObjectName& name, const char* thing) {
  if (!name.object.empty() && !base::ends_with(name.object, "/")) return {};
  return base::fail(Code::kInvalidArgument, "cannot write '", name.url(), "': the ", thing,
                    "'s name is missing");
}

base::Result<ObjectName> parse_object_url(const std::string& url) {
  const Scheme* scheme = scheme_of(url);
  if (scheme == nullptr)
    return base::fail(Code::kInvalidArgument, "'", url,
                      "' is not an object: expected gs://BUCKET/NAME, s3://BUCKET/NAME, "
                      "az://ACCOUNT/CONTAINER/NAME or hf://OWNER/NAME/FILE");
  const std::string path = url.substr(scheme->name.size() + 3);
  int parts = scheme->parts;
  for (const char* kind : {"datasets/", "spaces/", "models/"})
    if (scheme->name == "hf" && base::starts_with(path, kind)) parts = 3;
  std::size_t end = 0;
  for (int part = 0; part < parts; ++part) {
    const std::size_t from = part == 0 ? 0 : end + 1;
    end = path.find('/', from);
    const bool last = part + 1 == parts;
    if (end == from || from >= path.size() || (end == std::string::npos && !last))
      return base::fail(Code::kInvalidArgument, "'", url, "' is not an object: expected ", scheme->form);
  }
  return ObjectName{path.substr(0, end), end == std::string::npos ? "" : path.substr(end + 1),
                    std::string(scheme->name)};
}

base::Result<Store*> store_of(const ObjectName& name) {
  for (const Scheme& scheme : kSchemes)
    if (scheme.name == name.scheme) return scheme.store();
  return base::fail(Code::kInvalidArgument, "no store is known for '", name.url(), "'");
}

base::Result<Store*> store_to_write(const ObjectName& name) {
  if (name.scheme == "hf")
    return base::fail(Code::kUnimplemented, "cannot write ", name.url(),
                      ": hf:// is only read. Write to a folder, and upload it with 'hf upload'");
  return store_of(name);
}

base::Status Upload::write(const void* bytes, std::size_t size) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    // A full buffer is sent only when more follows: the last chunk must be sent as the last.
    if (buffer_.size() == chunk_bytes_) SLUICE_OK(send_chunk());
    const std::size_t step = std::min(size, chunk_bytes_ - buffer_.size());
    if (buffer_.capacity() == 0) buffer_.reserve(std::min(chunk_bytes_, std::size_t{1} << 20));
    buffer_.append(from, step);
    crc_ = base::crc32c(from, step, crc_);
    written_ += step;
    from += step;
    size -= step;
  }
  return {};
}

base::Result<std::vector<std::string>> Store::glob(const std::string& url) const {
  SLUICE_TRY(const ObjectName pattern, parse_object_url(url));
  const std::size_t wild = pattern.object.find_first_of("*?[");
  const std::string prefix = pattern.object.substr(0, wild);
  const std::string rest = wild == std::string::npos ? "" : pattern.object.substr(wild);
  const bool flat = rest.find('/') == std::string::npos && rest.find("**") == std::string::npos;
  SLUICE_TRY(const auto objects, list(pattern.bucket, prefix, flat));
  std::vector<std::string> urls;
  for (const ObjectFacts& object : objects)
    if (matches(pattern.object, object.name)) urls.push_back(pattern.beside(object.name).url());
  if (urls.empty())
    return base::fail(Code::kNotFound, "no object matches '", url, "' (", objects.size(), " begin with '",
                      pattern.beside(prefix).url(), "'): check the bucket and the pattern");
  return urls;
}

base::Result<ObjectFacts> Store::upload_file(const std::string& path, const ObjectName& name,
                                             const UploadOptions& wanted) const {
  const std::uint64_t size = base::file_size(path).value_or(0);  // 0 for a pipe, whose size is unknown
  UploadOptions options = wanted;
  options.chunk_bytes =
      std::max(options.chunk_bytes, static_cast<std::size_t>(size / (kMaxChunks * kChunkUnit)) * kChunkUnit);
  for (int round = 0;; ++round) {
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "rbe"),
                                                                  &std::fclose);
    if (!file) return base::fail_errno(errno, "open", path);
    SLUICE_TRY(auto upload, start_upload(name, options));
    std::vector<char> piece(1 << 20);
    base::Status status;
    while (status) {
      const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get());
      if (got == 0) break;
      status = upload->write(piece.data(), got);
    }
    if (std::ferror(file.get()) != 0) return base::fail_errno(errno, "read", path);
    if (status) {
      auto facts = upload->finish();
      if (facts || facts.error().code() != Code::kAborted || round == 2) return facts;
    } else if (status.error().code() != Code::kAborted || round == 2) {
      return tl::unexpected<Error>(status.error());
    }
  }
}

base::Result<ObjectFacts> Store::upload_text(std::string_view text, const ObjectName& name,
                                             const UploadOptions& options) const {
  for (int round = 0;; ++round) {
    SLUICE_TRY(auto upload, start_upload(name, options));
    const auto status = upload->write(text);
    if (!status && status.error().code() != Code::kAborted) return tl::unexpected<Error>(status.error());
    auto facts = status ? upload->finish() : base::Result<ObjectFacts>(tl::unexpected<Error>(status.error()));
    if (facts || facts.error().code() != Code::kAborted || round == 2) return facts;
  }
}

base::Result<ObjectFacts> Store::upload_part(const std::string& path, std::uint64_t from, std::uint64_t to,
                                             const ObjectName& name, const UploadOptions& options) const {
  for (int round = 0;; ++round) {
    SLUICE_TRY(auto upload, start_upload(name, options));
    base::Status status;
    while (status && upload->size() < to - from) {
      const std::uint64_t at = from + upload->size();
      SLUICE_TRY(const std::string piece,
                 read_part(path, at, std::min<std::uint64_t>(to, at + kPieceInMemory)));
      status = upload->write(piece);
    }
    if (!status && status.error().code() != Code::kAborted) return tl::unexpected<Error>(status.error());
    auto facts = status ? upload->finish() : base::Result<ObjectFacts>(tl::unexpected<Error>(status.error()));
    if (facts || facts.error().code() != Code::kAborted || round == 2) return facts;
  }
}

base::Result<ObjectFacts> Store::append(const std::string&, std::uint64_t, const ObjectName& name,
                                        const ObjectFacts&) const {
  return base::fail(Code::kUnimplemented, "cannot append to ", name.url(),
                    ": its store replaces whole objects");
}

base::Result<std::string> read_part(const std::string& path, std::uint64_t from, std::uint64_t to) {
  const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "rbe"),
                                                                &std::fclose);
  if (!file) return base::fail_errno(errno, "open", path);
  std::string bytes(to - from, '\0');
  if (::fseeko(file.get(), static_cast<off_t>(from), SEEK_SET) != 0)
    return base::fail_errno(errno, "read", path);
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) == bytes.size()) return bytes;
  if (std::ferror(file.get()) != 0) return base::fail_errno(errno, "read", path);
  return base::fail(Code::kFailedPrecondition, path, " has become shorter than ", to,
                    " bytes while it was read");
}

}  // namespace sluice::cloud
