#include "sluice/kernels/left_out.h"

#include <set>
#include <string>

#include "sluice/kernels/install.h"

namespace sluice::kernels {
namespace {

constexpr std::string_view kChoices[] = {"columns",         "depthwise",       "depthwise_planes", "direct",
                                         "few_pixels",      "narrow_winograd", "panels",           "planes",
                                         "onednn_products", "pointwise",       "product_update",   "thin",
                                         "winograd"};

std::set<std::string, std::less<>>& left_out() {
  static auto& names = *new std::set<std::string, std::less<>>;
  return names;
}

}  // namespace

std::span<const std::string_view> choices() { return kChoices; }

void leave_out(const std::vector<std::string>& names) { left_out() = {names.begin(), names.end()}; }

bool is_left_out(std::string_view name) { return left_out().contains(name); }

}  // namespace sluice::kernels
