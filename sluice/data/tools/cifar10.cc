#include "sluice/data/tools/cifar10.h"

#include <numeric>
#include <optional>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/images/image.h"
#include "sluice/data/shards/tar.h"
#include "sluice/data/tools/download.h"

namespace sluice::data {
namespace {

constexpr std::int64_t kSide = 32, kPlane = kSide * kSide, kImageBytes = 3 * kPlane;
constexpr std::uint64_t kTrainOrder = 21;  // separates these random numbers from others
constexpr char kPythonMd5[] = "c58f30108f718f92721af3b95e74349a";  // of cifar-10-python.tar.gz
constexpr char kUseTheBinary[] =
    "whose batches are pickles: use cifar-10-binary.tar.gz, which holds the same images";

const std::vector<std::string>& published_classes() {
  static const std::vector<std::string> kNames = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                  "dog",      "frog",       "horse", "ship", "truck"};
  return kNames;
}

// Images as the archives hold them: all red values, all green ones, all blue ones.
struct Images {
  std::vector<std::int64_t> labels;
  std::string planes;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

struct Archive {
  Images train, test;
  std::vector<std::string> classes = published_classes();
};

// Adds records of one byte for the class and 3,072 for the image.
base::Status add_binary(const std::string& bytes, Images& images) {
  constexpr std::size_t kRecord = 1 + kImageBytes;
  if (bytes.size() % kRecord != 0)
    return base::fail(Code::kDataLoss, "expected records of ", kRecord, " bytes, found ", bytes.size(),
                      " bytes");
  for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
    images.labels.push_back(static_cast<unsigned char>(bytes[at]));
    images.planes.append(bytes, at + 1, kImageBytes);
  }
  return {};
}

void add_names(const std::string& bytes, Archive& archive) {
  archive.classes.clear();
  for (const std::string& line : base::split(bytes, '\n'))
    if (!base::trim(line).empty()) archive.classes.emplace_back(base::trim(line));
}

base::Status add_member(const std::string& name, const std::string& bytes, Archive& archive) {
  const std::size_t slash = name.rfind('/');
  const std::string file = slash == std::string::npos ? name : name.substr(slash + 1);
  if (file == "batches.meta" || (base::starts_with(file, "data_batch_") && !base::ends_with(file, ".bin")))
    return base::fail(Code::kInvalidArgument, "the archive is CIFAR-10's Python version, ", kUseTheBinary);
  if (base::starts_with(file, "data_batch_")) return add_binary(bytes, archive.train);
  if (file == "test_batch.bin") return add_binary(bytes, archive.test);
  if (file == "batches.meta.txt") add_names(bytes, archive);
  return {};  // readme.html
}

base::Result<Archive> read_archive(const std::string& path) {
  SLUICE_TRY(auto source, open_source(path));
  TarReader tar(std::move(source));
  Archive archive;
  Member member;
  std::string bytes;
  while (true) {
    SLUICE_TRY(const bool found, tar.next(member));
    if (!found) break;
    if (member.kind != MemberKind::kFile) continue;
    SLUICE_OK(tar.read_payload(bytes));
    const auto status = add_member(member.name, bytes, archive);
    if (!status) return base::fail_at(status, path, ": member ", member.name);
  }
  if (archive.train.size() == 0 || archive.test.size() == 0)
    return base::fail(Code::kInvalidArgument, path,
                      ": expected data_batch_1.bin … and test_batch.bin, found ", archive.train.size(),
                      " training and ", archive.test.size(), " test images");
  return archive;
}

base::Status check_labels(const Images& images, std::size_t classes, const std::string& path) {
  for (std::size_t i = 0; i < images.labels.size(); ++i)
    if (images.labels[i] < 0 || images.labels[i] >= static_cast<std::int64_t>(classes))
      return base::fail(Code::kOutOfRange, path, ": image ", i, " has class ", images.labels[i],
                        ": expected 0 to ", classes - 1);
  return {};
}

base::Result<ShardReport> write_images(const Images& images, const std::vector<std::int64_t>& order,
                                       const std::string& prefix, const Cifar10Options& options) {
  const auto produce = [&](std::int64_t i) -> base::Result<NewSample> {
    const std::int64_t row = order[static_cast<std::size_t>(i)];
    Pixels pixels{kSide, kSide, 3, std::vector<std::uint8_t>(kImageBytes)};
    for (std::int64_t at = 0; at < kPlane; ++at)
      for (std::int64_t c = 0; c < 3; ++c)
        pixels.bytes[static_cast<std::size_t>(at * 3 + c)] = static_cast<std::uint8_t>(
            images.planes[static_cast<std::size_t>(row * kImageBytes + c * kPlane + at)]);
    SLUICE_TRY(std::string png, encode_png(pixels));
    NewSample sample{sample_key(row), {}};
    sample.members.emplace_back("png", std::move(png));
    sample.members.emplace_back("cls", std::to_string(images.labels[static_cast<std::size_t>(row)]));
    return sample;
  };
  ShardOptions shards{options.folder, prefix, options.shard_size, options.overwrite, nullptr, 0, ""};
  if (options.progress)
    shards.progress = [&](std::int64_t done, std::int64_t total) { options.progress(prefix, done, total); };
  return write_shards(images.size(), produce, shards);
}

base::Status check_sum(const std::string& path, const std::string& expected) {
  SLUICE_TRY(const std::string found, md5_of_file(path));
  if (found == kPythonMd5)
    return base::fail(Code::kInvalidArgument, path, ": this is CIFAR-10's Python version, ", kUseTheBinary);
  const std::string wanted = expected.empty() ? kCifar10BinaryMd5 : expected;
  if (found == wanted) return {};
  return base::fail(Code::kDataLoss, path, ": expected the MD5 sum ", wanted, ", found ", found,
                    ": the archive is damaged or another one; download it again, or name its sum with --md5");
}

std::string archive_address(const std::string& source) {
  if (!base::ends_with(source, ".html") && !base::ends_with(source, "/")) return source;
  return source.substr(0, source.rfind('/') + 1) + "cifar-10-binary.tar.gz";
}

}  // namespace

base::Result<Cifar10Report> pack_cifar10(const Cifar10Options& options) {
  std::string path = options.source;
  std::optional<base::TemporaryDirectory> scratch;
  if (base::starts_with(path, "http://") || base::starts_with(path, "https://")) {
    SLUICE_TRY(scratch, base::TemporaryDirectory::create("sluice-cifar10"));
    path = scratch->path("cifar-10.tar.gz");
    SLUICE_OK(download(archive_address(options.source), path, [&](std::int64_t done, std::int64_t total) {
      if (options.progress) options.progress("download", done, total);
    }));
  }
  SLUICE_OK(check_sum(path, options.md5));
  SLUICE_TRY(const Archive archive, read_archive(path));
  SLUICE_OK(check_labels(archive.train, archive.classes.size(), path));
  SLUICE_OK(check_labels(archive.test, archive.classes.size(), path));

  std::vector<std::int64_t> train(archive.train.labels.size()), test(archive.test.labels.size());
  std::iota(train.begin(), train.end(), 0);
  std::iota(test.begin(), test.end(), 0);
  base::Random({options.seed, kTrainOrder}).shuffle(train);
  Cifar10Report report;
  report.classes = archive.classes;
  SLUICE_TRY(report.train, write_images(archive.train, train, "train", options));
  SLUICE_TRY(report.test, write_images(archive.test, test, "test", options));
  SLUICE_OK(write_lines(base::join_path(options.folder, "classes.txt"), archive.classes));
  return report;
}

}  // namespace sluice::data
