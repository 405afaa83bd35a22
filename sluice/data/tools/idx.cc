#include "sluice/data/tools/idx.h"

#include <cstring>
#include <numeric>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/images/image.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kIdxOrder = 31;  // separates these random numbers from others

tl::unexpected<Error> idx_error(const std::string& cause) {
  return base::fail(Code::kDataLoss, "not a readable IDX file: ", cause);
}

base::Result<Array> read_idx(const std::string& path) {
  SLUICE_TRY(std::string bytes, base::read_file(path));
  if (base::starts_with(bytes, "\x1f\x8b")) {
    SLUICE_TRY(bytes, gunzip(path, std::move(bytes)));
  }
  auto array = parse_idx(bytes);
  if (!array) return base::fail_at(array, path);
  return array;
}

}  // namespace

base::Result<Array> parse_idx(std::string_view bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0)
    return idx_error("it does not begin with two zeros: expected a file such as train-images-idx3-ubyte");
  if (byte(2) != 8)
    return idx_error(base::str("element type ", int{byte(2)}, ": expected 8, unsigned bytes"));
  const std::size_t extents = byte(3), start = 4 + 4 * extents;
  if (extents == 0 || bytes.size() < start) return idx_error("it is cut off inside its header");
  std::vector<std::int64_t> shape;
  std::size_t need = 1;
  for (std::size_t at = 4; at < start; at += 4) {
    const std::uint32_t extent = std::uint32_t{byte(at)} << 24 | std::uint32_t{byte(at + 1)} << 16 |
                                 std::uint32_t{byte(at + 2)} << 8 | byte(at + 3);
    shape.push_back(extent);
    if (__builtin_mul_overflow(need, std::size_t{extent}, &need)) return idx_error("its shape is too large");
  }
  if (bytes.size() - start != need)
    return idx_error(base::str("its shape [", base::join(shape, ", "), "] needs ", need, " bytes, found ",
                               bytes.size() - start));
  Array array(ElementType::kUint8, shape);
  std::memcpy(array.data<void>(), bytes.data() + start, need);
  return array;
}

base::Result<ShardReport> pack_idx(const IdxOptions& options) {
  SLUICE_TRY(const Array images, read_idx(options.images));
  SLUICE_TRY(const Array labels, read_idx(options.labels));
  if (images.shape().size() != 3 || labels.shape().size() != 1 || images.shape()[0] != labels.shape()[0])
    return base::fail(Code::kInvalidArgument, "expected images [N, height, width] and N labels, found ",
                      images.describe(), " in ", options.images, " and ", labels.describe(), " in ",
                      options.labels);
  const std::int64_t count = images.shape()[0], height = images.shape()[1], width = images.shape()[2];
  if (height == 0 || width == 0)
    return base::fail(Code::kInvalidArgument, options.images, ": images without pixels, ", images.describe());
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (options.shuffle) base::Random({options.seed, kIdxOrder}).shuffle(order);
  const auto produce = [&](std::int64_t i) -> base::Result<NewSample> {
    const std::int64_t row = order[static_cast<std::size_t>(i)];
    const auto* first = images.data<std::uint8_t>() + row * height * width;
    SLUICE_TRY(std::string png, encode_png({height, width, 1, {first, first + height * width}}));
    NewSample sample{sample_key(row), {}};
    sample.members.emplace_back("png", std::move(png));
    sample.members.emplace_back("cls", std::to_string(labels.data<std::uint8_t>()[row]));
    return sample;
  };
  return write_shards(count, produce, options.shards);
}

}  // namespace sluice::data
