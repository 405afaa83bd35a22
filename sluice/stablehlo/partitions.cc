#include "sluice/stablehlo/partitions.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo {
namespace {

constexpr std::string_view kOnePartition = "mhlo.num_partitions = 1 : i32} {\n";
constexpr std::string_view kMain = "  func.func public @main(";

using Edges = std::vector<int64_t>;

// Returns what stands between two marks; empty if one of them is missing.
std::string_view text_between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  const size_t end = text.find(after);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

Edges edges_of(std::string_view line, std::string_view name) {
  Edges edges;
  const std::string_view text = text_between(line, base::str(name, " = array<i64: "), ">");
  if (text.empty()) return edges;
  for (const std::string& item : base::split(text, ','))
    edges.push_back(base::number_of<int64_t>(base::trim(item)).value_or(0));
  return edges;
}

std::string array_text(const Edges& numbers) {
  return base::str("array<i64: ", base::join(numbers, ", "), ">");
}

// Returns the text with each line that has `part` replaced by write(line). Regions of one device's blocks
// (Rewriter::manual) stay as they are: XLA's partitioner does not touch them.
std::string each_line(std::string_view text, std::string_view part, std::string (*write)(std::string_view)) {
  std::string written;
  bool blocks = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.find("\"sdy.manual_computation\"(") != std::string_view::npos) blocks = true;
    if (line.find("}) {in_shardings = ") != std::string_view::npos) blocks = false;
    written += blocks || line.find(part) == std::string_view::npos ? std::string(line) : write(line);
    if (end == std::string_view::npos) break;
    written += '\n';
    text.remove_prefix(end + 1);
  }
  return written;
}

// The inside of a tensor's type, such as "8x4xf32", of other dimensions.
struct TensorInside {
  Edges dims;
  std::string_view element;

  TensorInside(std::string_view type, size_t rank) {
    for (size_t i = 0; i < rank; ++i) {
      const size_t x = type.find('x');
      if (x == std::string_view::npos) break;
      dims.push_back(base::number_of<int64_t>(type.substr(0, x)).value_or(0));
      type.remove_prefix(x + 1);
    }
    element = type;
  }
  std::string with(const Edges& other) const { return base::str(base::join(other, "x"), 'x', element); }
};

// A pad whose result has its operand's shape, taken apart: what is left of the operand, and what surrounds
// it.
struct TakenApart {
  Edges start, limit, left, before, after;

  void add(int64_t extent, int64_t low) {
    const int64_t distance = std::clamp(low, -extent, extent);
    before.push_back(std::max<int64_t>(distance, 0));
    after.push_back(std::max<int64_t>(-distance, 0));
    start.push_back(after.back());
    limit.push_back(extent - before.back());
    left.push_back(limit.back() - start.back());
  }
};

constexpr std::string_view kPadCall = " = \"stablehlo.pad\"(", kToTensor = ") -> tensor<";

// Returns a line that shifts as a slice and a pad; `type` is its operand's.
std::string slice_and_pad(std::string_view line, std::string_view type, const TensorInside& inside,
                          const TakenApart& shift) {
  const size_t percent = line.find('%'), call = line.find(kPadCall);
  const std::string_view blanks = line.substr(0, percent), name = line.substr(percent, call - percent);
  const std::string_view operands = line.substr(call + kPadCall.size());
  const std::string_view operand = operands.substr(0, operands.find(','));
  const std::string_view fill = text_between(operands, ", ", ")");
  const std::string_view fill_type = text_between(line, ">, tensor<", ">) -> ");
  const std::string_view rest = line.substr(line.find(kToTensor) + kToTensor.size() + type.size() + 1);
  const std::string part = base::str("%shift", name.substr(1)), part_type = inside.with(shift.left);
  const size_t rank = inside.dims.size();
  return base::str(
      blanks, part, " = \"stablehlo.slice\"(", operand, ") {start_indices = ", array_text(shift.start),
      ", limit_indices = ", array_text(shift.limit), ", strides = ", array_text(Edges(rank, 1)),
      "} : (tensor<", type, ">) -> tensor<", part_type, '>', rest, '\n', blanks, name, kPadCall, part, ", ",
      fill, ") {edge_padding_low = ", array_text(shift.before),
      ", edge_padding_high = ", array_text(shift.after), ", interior_padding = ", array_text(Edges(rank, 0)),
      "} : (tensor<", part_type, ">, tensor<", fill_type, ">) -> tensor<", type, '>', rest);
}

// Returns one line of a pad, which may become two.
std::string without_shift(std::string_view line) {
  const std::string_view type = text_between(line, " : (tensor<", ">, tensor<");
  const size_t arrow = line.find(kToTensor);
  const Edges low = edges_of(line, "edge_padding_low"), interior = edges_of(line, "interior_padding");
  const auto is_zero = [](int64_t number) { return number == 0; };
  const bool keeps_shape = !type.empty() && arrow != std::string_view::npos &&
                           base::starts_with(line.substr(arrow + kToTensor.size()), base::str(type, '>')) &&
                           std::all_of(interior.begin(), interior.end(), is_zero);
  if (!keeps_shape || std::all_of(low.begin(), low.end(), is_zero)) return std::string(line);
  const TensorInside inside(type, low.size());
  TakenApart shift;
  for (size_t i = 0; i < low.size() && i < inside.dims.size(); ++i) shift.add(inside.dims[i], low[i]);
  return slice_and_pad(line, type, inside, shift);
}

constexpr std::string_view kConvolutionCall = " = \"stablehlo.convolution\"(";

// Returns a layout that is free but for the spatial dimensions, which are whole: "[{?}, {?}, {}, {}]" for
// "b, f, 0, 1".
std::string whole_images(std::string_view dims) {
  std::vector<std::string> each;
  for (const std::string& dim : base::split(dims, ','))
    each.emplace_back(base::number_of<int64_t>(base::trim(dim)) ? "{}" : "{?}");
  return base::str('[', base::join(each, ", "), ']');
}

// Returns one line of a convolution with the lines around it that make its operands and its result whole
// along their spatial dimensions.
std::string of_whole_images(std::string_view line) {
  const size_t percent = line.find('%'), call = line.find(kConvolutionCall), arrow = line.find(kToTensor);
  const std::string_view blanks = line.substr(0, percent),
                         name = line.substr(percent + 1, call - percent - 1);
  const size_t end = line.find(')', call);
  const std::string_view left = text_between(line, kConvolutionCall, ", "),
                         right = text_between(line.substr(0, end + 1), ", ", ")"),
                         left_type = text_between(line, " : (tensor<", ">, tensor<"),
                         right_type = text_between(line, ">, tensor<", ">) -> tensor<"),
                         made = line.substr(arrow + kToTensor.size()),
                         made_type = made.substr(0, made.find("> loc("));
  const auto whole = [&](std::string_view result, std::string_view operand, std::string_view dims,
                         std::string_view type) {
    return base::str(blanks, '%', result, name, " = sdy.sharding_constraint ", operand, " <@mesh, ",
                     whole_images(dims), "> : tensor<", type);
  };
  return base::str(whole("left", left, text_between(line, "#stablehlo.conv<[", "]"), left_type), ">\n",
                   whole("right", right, text_between(line, "]x[", "]"), right_type), ">\n", blanks, "%made",
                   name, kConvolutionCall, "%left", name, ", %right", name, line.substr(end), '\n',
                   whole("", base::str("%made", name), text_between(line, "]->[", "]"), made_type),
                   made_type.size() == made.size() ? "" : ">");
}

// Returns the text with convolutions of whole images. Over a mesh of several axes, XLA's partitioner adds up
// the parts of a convolution whose images lie along their height or width over all devices, not only over
// those along this axis: the result is too large by the number of devices along the other axes. This happens
// to the gradient of a weight, and to others that the partitioner computes in the same way. libtpu's
// partitioner does the same.
std::string with_whole_images(std::string_view text) {
  return each_line(text, kConvolutionCall, of_whole_images);
}

constexpr std::string_view kSliceCall = " = \"stablehlo.slice\"(";

// Returns one line of a slice with a line before it that makes its operand whole along the dimensions that
// the slice cuts.
std::string of_whole_dims(std::string_view line) {
  const size_t percent = line.find('%'), call = line.find(kSliceCall), end = line.find(')', call);
  const std::string_view blanks = line.substr(0, percent),
                         name = line.substr(percent + 1, call - percent - 1),
                         operand = text_between(line, kSliceCall, ")"),
                         type = text_between(line, " : (tensor<", ">) -> tensor<"),
                         made = text_between(line, ">) -> tensor<", ">");
  const size_t rank = edges_of(line, "start_indices").size();
  const TensorInside from(type, rank), to(made, rank);
  std::vector<std::string> each;
  for (size_t d = 0; d < rank; ++d) each.emplace_back(from.dims[d] == to.dims[d] ? "{?}" : "{}");
  return base::str(blanks, "%from", name, " = sdy.sharding_constraint ", operand, " <@mesh, [",
                   base::join(each, ", "), "]> : tensor<", type, ">\n", blanks, '%', name, kSliceCall,
                   "%from", name, line.substr(end));
}

// Returns the text with slices of dimensions that are whole. Over a mesh of three axes, the partitioner of
// the CPU plugin made wrong values of the gates of an LSTM that is written step by step: parts of a dimension
// that lies over an axis, whose result is then multiplied by a matrix.
std::string with_whole_slices(std::string_view text) { return each_line(text, kSliceCall, of_whole_dims); }

// Returns the number of axes along which the mesh has several devices.
std::ptrdiff_t axes_of(const Mesh& mesh) {
  const auto& axes = mesh.axes();
  return std::count_if(axes.begin(), axes.end(), [](const MeshAxis& axis) { return axis.size > 1; });
}

// Returns the text with each shift (a pad whose result has its operand's shape) as a slice and a pad that
// makes it larger again. XLA's partitioner drops the padding of a shift if the operand is whole on every
// device and the result is laid out: a cumulative sum then comes out doubled.
std::string without_shifts(std::string_view text) { return each_line(text, kPadCall, without_shift); }

// Copies a program's text, with layouts where they belong.
class Writer {
 public:
  Writer(std::string_view text, const Partitions& partitions) : rest_(text), partitions_(partitions) {}

  std::string write() {
    copy_until(kOnePartition);
    rest_.remove_prefix(kOnePartition.size());
    text_ += base::str("mhlo.num_partitions = ", partitions_.mesh.devices(), " : i32} {\n  ",
                       partitions_.mesh.declaration(), '\n');
    if (!base::starts_with(rest_, kMain)) refuse("a function @main after the module's line");
    copy(kMain.size());
    values(partitions_.arguments, "argument");
    if (!base::starts_with(rest_, " -> (")) refuse("the results of @main");
    copy(5);
    values(partitions_.results, "result");
    std::string body = without_shifts(rest_);
    if (axes_of(partitions_.mesh) > 1) body = with_whole_images(body);
    if (axes_of(partitions_.mesh) > 2) body = with_whole_slices(body);
    text_ += body;
    return std::move(text_);
  }

 private:
  [[noreturn]] static void refuse(std::string_view what) {
    throw_error(Code::kInvalidArgument, base::str("a program to lay out over a mesh: expected ", what,
                                                  ", as Sluice writes it for one replica"));
  }

  void copy(size_t count) {
    text_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
  }
  void copy_until(std::string_view end) {
    const size_t found = rest_.find(end);
    if (found == std::string_view::npos) refuse(end.substr(0, end.find(" {")));
    copy(found);
  }

  // Returns the place of the '>' that ends the type at the beginning of the rest.
  size_t end_of_type() const {
    int depth = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '<') ++depth;
      if (rest_[i] == '>' && --depth == 0) return i;
    }
    refuse("the end of a type");
  }

  // Copies "%arg0: tensor<2xf32>, tensor<f32> {…})" and its closing parenthesis, with these layouts.
  void values(const std::vector<Layout>& layouts, std::string_view what) {
    size_t count = 0;
    for (; !rest_.empty() && rest_.front() != ')'; ++count) {
      if (count == layouts.size())
        throw_error(Code::kInvalidArgument, base::str("a program to lay out over a mesh has more ", what,
                                                      "s than the ", layouts.size(), " layouts for them"));
      copy_until("tensor<");
      const size_t end = end_of_type();
      check(layouts[count], rest_.substr(7, end - 7), what, count);
      copy(end + 1);
      const std::string attribute = base::str("sdy.sharding = ", layouts[count].attribute());
      if (base::starts_with(rest_, " {")) {
        copy_until("}");
        text_ += ", " + attribute;
        copy(1);
      } else {
        text_ += " {" + attribute + "}";
      }
      if (base::starts_with(rest_, ", ")) copy(2);
    }
    if (rest_.empty()) refuse(base::str("a ')' after the ", what, "s"));
    if (count != layouts.size())
      throw_error(Code::kInvalidArgument, base::str("a program to lay out over a mesh has ", count, ' ', what,
                                                    "s, found ", layouts.size(), " layouts for them"));
    copy(1);
  }

  // Checks a layout against a type's inside, such as "4x5xf32".
  void check(const Layout& layout, std::string_view type, std::string_view what, size_t number) const {
    std::vector<int64_t> dims;
    for (size_t x = type.find('x'); x != std::string_view::npos; x = type.find('x')) {
      const auto dim = base::number_of<int64_t>(type.substr(0, x));
      if (!dim) break;  // the 'x' of "complex"
      dims.push_back(*dim);
      type.remove_prefix(x + 1);
    }
    const std::string found = layout.misfit(partitions_.mesh, dims);
    if (!found.empty()) throw_error(Code::kInvalidArgument, base::str(what, ' ', number, ": ", found));
  }

  std::string_view rest_;
  const Partitions& partitions_;
  std::string text_;
};

}  // namespace

std::string with_layouts(std::string_view text, const Partitions& partitions) {
  return Writer(text, partitions).write();
}

namespace {

constexpr std::string_view kMesh = "sdy.mesh @mesh = <[";
constexpr std::string_view kSignature = "func.func public @main(";
constexpr std::string_view kSharding = "sdy.sharding = #sdy.sharding<@mesh, [";

// Returns the text up to `end`, and moves `rest` after it; nullopt if `end` does not come.
std::optional<std::string_view> take_until(std::string_view& rest, std::string_view end) {
  const size_t at = rest.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return before;
}

// Returns the texts in quotes.
std::vector<std::string> names_in_quotes(std::string_view text) {
  std::vector<std::string> found;
  while (take_until(text, "\"")) {
    const auto name = take_until(text, "\"");
    if (!name) break;
    found.emplace_back(*name);
  }
  return found;
}

// Reads "\"data\"=2, \"fsdp\"=4".
std::optional<Mesh> read_mesh(std::string_view text) {
  std::vector<MeshAxis> axes;
  for (const std::string& item : base::split(text, ',')) {
    const auto names = names_in_quotes(item);
    const size_t equals = item.find('=');
    const auto size = equals == std::string::npos
                          ? std::nullopt
                          : base::number_of<int64_t>(std::string_view(item).substr(equals + 1));
    if (names.size() != 1 || !size) return std::nullopt;
    axes.push_back({names.front(), *size});
  }
  return Mesh(std::move(axes));
}

// Reads "{\"fsdp\"}p1, {}".
Layout read_layout(std::string_view text) {
  std::vector<LayoutDim> dims;
  while (take_until(text, "{")) {
    const auto axes = take_until(text, "}");
    if (!axes) break;
    LayoutDim dim{names_in_quotes(*axes), 0};
    if (!text.empty() && text.front() == 'p')
      dim.priority =
          static_cast<int>(base::number_of<int64_t>(text.substr(1, text.find(',') - 1)).value_or(0));
    dims.push_back(std::move(dim));
  }
  return Layout(std::move(dims));
}

// Returns the bytes of an element type: "f32", "ui8", "i1", "complex<f32>", "f8E5M2"; 0 for another.
int64_t bytes_of_element(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == dtype_name(static_cast<DType>(i)))
      return static_cast<int64_t>(dtype_size(static_cast<DType>(i)));
  return 0;
}

// Reads "4x5xf32".
void read_type(std::string_view inside, LaidOutValue& value) {
  for (size_t x = inside.find('x'); x != std::string_view::npos; x = inside.find('x')) {
    const auto dim = base::number_of<int64_t>(inside.substr(0, x));
    if (!dim) break;  // the 'x' of "complex"
    value.dims.push_back(*dim);
    inside.remove_prefix(x + 1);
  }
  value.element = inside;
}

// Returns the place of the '>' that ends the type at the beginning of the text.
size_t end_of_type(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Reads "tensor<…> {…}, tensor<…> {…})" and its parenthesis; nullopt for a value without a layout.
std::optional<std::vector<LaidOutValue>> read_values(std::string_view& rest) {
  std::vector<LaidOutValue> values;
  while (!rest.empty() && rest.front() != ')') {
    const size_t start = rest.find("tensor<");
    if (start == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(start);
    const size_t end = end_of_type(rest);
    if (end == std::string_view::npos) return std::nullopt;
    LaidOutValue value;
    read_type(rest.substr(7, end - 7), value);
    rest.remove_prefix(end + 1);
    const auto before = take_until(rest, kSharding);
    const auto layout = before ? take_until(rest, "]>") : std::nullopt;
    if (!layout || before->find("tensor<") != std::string_view::npos) return std::nullopt;
    value.taken = before->find("tf.aliasing_output") != std::string_view::npos;
    value.layout = read_layout(*layout);
    if (!take_until(rest, "}")) return std::nullopt;
    values.push_back(std::move(value));
  }
  if (rest.empty()) return std::nullopt;
  rest.remove_prefix(1);
  return values;
}

std::optional<LaidOutProgram> read_signature(std::string_view text) {
  if (!take_until(text, kMesh)) return std::nullopt;
  const auto axes = take_until(text, "]>");
  if (!axes || !take_until(text, kSignature)) return std::nullopt;
  const auto mesh = read_mesh(*axes);
  auto arguments = read_values(text);
  if (!mesh || !arguments || !take_until(text, "-> (")) return std::nullopt;
  auto results = read_values(text);
  if (!results) return std::nullopt;
  return LaidOutProgram{*mesh, std::move(*arguments), std::move(*results)};
}

}  // namespace

namespace {

std::string type_text(const std::vector<int64_t>& dims, const std::string& element) {
  std::string text = "tensor<";
  for (const int64_t dim : dims) text += base::str(dim, 'x');
  return text + element + '>';
}

}  // namespace

std::string LaidOutValue::type() const { return type_text(dims, element); }
std::string LaidOutValue::block_type(const Mesh& mesh) const {
  return type_text(layout.shard_dims(mesh, dims), element);
}

int64_t LaidOutValue::bytes() const {
  int64_t all = bytes_of_element(element);
  for (const int64_t dim : dims) all *= dim;
  return all;
}

int64_t LaidOutValue::block_bytes(const Mesh& mesh) const {
  int64_t parts = 1;
  for (size_t i = 0; i < layout.rank(); ++i) parts *= layout.parts(mesh, i);
  return bytes() / parts;
}

std::optional<LaidOutProgram> read_layouts(std::string_view text) {
  try {
    return read_signature(text);
  } catch (const Error&) {  // axes with other names: another program's mesh
    return std::nullopt;
  }
}

}  // namespace sluice::stablehlo
