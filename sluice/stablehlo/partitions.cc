#include "sluice/stablehlo/partitions.h"

#include <cstdint>

#include "sluice/base/error.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::stablehlo {
namespace {

constexpr std::string_view kOnePartition = "mhlo.num_partitions = 1 : i32} {\n";
constexpr std::string_view kMain = "  func.func public @main(";

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
    text_ += rest_;
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

}  // namespace sluice::stablehlo
