// Matrix products and convolutions.
#include <algorithm>

#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

// The dimensions of one side of a product: batch, contracted, and the others in order.
struct Side {
  Dims batch, contract, free;
};

Side side_of(std::string_view op, std::string_view name, const Type& type, const Dims& batch,
             const Dims& contract) {
  std::vector<bool> taken(type.dims.size(), false);
  Side side;
  const auto take = [&](const Dims& list, Dims& extents) {
    for (int64_t dim : list) {
      if (dim < 0 || dim >= type.rank() || taken[static_cast<size_t>(dim)]) {
        reject(op, "batch and contracting dimensions must be different ones of the ", name, " operand ",
               type.str(), ", found ", list_text(batch), " and ", list_text(contract));
      }
      taken[static_cast<size_t>(dim)] = true;
      extents.push_back(type.dims[static_cast<size_t>(dim)]);
    }
  };
  take(batch, side.batch);
  take(contract, side.contract);
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) side.free.push_back(type.dims[i]);
  }
  return side;
}

std::string dot_text(const DotDims& dims) {
  std::string text = "#stablehlo.dot<";
  const auto put = [&text](std::string_view name, const Dims& list) {
    if (list.empty()) return;
    if (text.back() != '<') text += ", ";
    text.append(name).append(" = ").append(list_text(list));
  };
  put("lhs_batching_dimensions", dims.lhs_batch);
  put("rhs_batching_dimensions", dims.rhs_batch);
  put("lhs_contracting_dimensions", dims.lhs_contract);
  put("rhs_contracting_dimensions", dims.rhs_contract);
  return text += '>';
}

// Returns "[b, f, 0, 1]": the role of each dimension.
std::string roles_text(std::string_view first, int64_t first_dim, std::string_view second, int64_t second_dim,
                       const Dims& spatial) {
  std::string text = "[";
  for (int64_t i = 0; i < static_cast<int64_t>(spatial.size()) + 2; ++i) {
    if (i > 0) text += ", ";
    if (i == first_dim) {
      text += first;
    } else if (i == second_dim) {
      text += second;
    } else {
      text += std::to_string(std::find(spatial.begin(), spatial.end(), i) - spatial.begin());
    }
  }
  return text += ']';
}

void check_roles(std::string_view op, std::string_view what, int64_t rank, int64_t first, int64_t second,
                 const Dims& spatial) {
  Dims all = spatial;
  all.insert(all.end(), {first, second});
  std::sort(all.begin(), all.end());
  bool fine = static_cast<int64_t>(all.size()) == rank;
  for (size_t i = 0; fine && i < all.size(); ++i) fine = all[i] == static_cast<int64_t>(i);
  if (!fine) {
    reject(op, "the dimension numbers of the ", what, " must name each of its ", rank,
           " dimensions once, found ", first, ", ", second, " and spatial ", list_text(spatial));
  }
}

void check_groups(std::string_view op, int64_t batch, int64_t features, int64_t kernel_in, int64_t kernel_out,
                  const ConvolutionWindow& window) {
  if (window.feature_groups < 1 || window.batch_groups < 1 ||
      (window.feature_groups > 1 && window.batch_groups > 1)) {
    reject(op, "groups must be at least 1 and only one kind of them above 1, found feature_groups ",
           window.feature_groups, " and batch_groups ", window.batch_groups);
  }
  if (features != kernel_in * window.feature_groups) {
    reject(op, "the input's features must be the kernel's input features times feature_groups, found ",
           features, " and ", kernel_in, " x ", window.feature_groups);
  }
  if (kernel_out % window.feature_groups != 0 || kernel_out % window.batch_groups != 0 ||
      batch % window.batch_groups != 0) {
    reject(op, "the kernel's output features (", kernel_out, ") must be a multiple of feature_groups (",
           window.feature_groups, ") and batch_groups (", window.batch_groups, "), and the batch (", batch,
           ") of batch_groups");
  }
}

}  // namespace

std::string Builder::Impl::precision_text() const {
  return precision == Precision::kHigh ? "[#stablehlo<precision HIGH>, #stablehlo<precision HIGH>]"
         : precision == Precision::kHighest
             ? "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
             : "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]";
}

Value Builder::dot_general(Value a, Value b, const DotDims& dims, std::optional<DType> result_dtype) {
  constexpr std::string_view kOp = "stablehlo.dot_general";
  impl_->use(kOp, {a, b});
  if (a.dtype() != b.dtype()) {
    reject(kOp, "operands must have one element type, found ", a.type().str(), " and ", b.type().str());
  }
  const Side lhs = side_of(kOp, "left", a.type(), dims.lhs_batch, dims.lhs_contract);
  const Side rhs = side_of(kOp, "right", b.type(), dims.rhs_batch, dims.rhs_contract);
  if (lhs.batch != rhs.batch || lhs.contract != rhs.contract) {
    reject(kOp, "batch and contracting dimensions must have the same extents on both sides, found batch ",
           list_text(lhs.batch), " and ", list_text(rhs.batch), ", contracting ", list_text(lhs.contract),
           " and ", list_text(rhs.contract), " in ", a.type().str(), " and ", b.type().str());
  }
  Type result{result_dtype.value_or(a.dtype()), lhs.batch};
  result.dims.insert(result.dims.end(), lhs.free.begin(), lhs.free.end());
  result.dims.insert(result.dims.end(), rhs.free.begin(), rhs.free.end());
  return impl_->add(kOp, {a, b},
                    Attributes()
                        .raw("dot_dimension_numbers", dot_text(dims))
                        .note("lhs_batch", dims.lhs_batch)
                        .note("rhs_batch", dims.rhs_batch)
                        .note("lhs_contract", dims.lhs_contract)
                        .note("rhs_contract", dims.rhs_contract)
                        .raw("precision_config", impl_->precision_text()),
                    result);
}

Value Builder::convolution(Value input, Value kernel, const ConvolutionDims& dims,
                           const ConvolutionWindow& window, std::optional<DType> result_dtype) {
  constexpr std::string_view kOp = "stablehlo.convolution";
  impl_->use(kOp, {input, kernel});
  if (input.dtype() != kernel.dtype() || input.rank() != kernel.rank() || input.rank() < 2) {
    reject(kOp, "input and kernel must have one element type and one rank of at least 2, found ",
           input.type().str(), " and ", kernel.type().str());
  }
  const int64_t rank = input.rank();
  check_roles(kOp, "input", rank, dims.input_batch, dims.input_feature, dims.input_spatial);
  check_roles(kOp, "kernel", rank, dims.kernel_output_feature, dims.kernel_input_feature,
              dims.kernel_spatial);
  check_roles(kOp, "output", rank, dims.output_batch, dims.output_feature, dims.output_spatial);
  const auto spatial = static_cast<size_t>(rank - 2);
  const std::vector<bool> reversal =
      window.reversal.empty() ? std::vector<bool>(spatial, false) : window.reversal;
  for (size_t count : {window.strides.size(), window.padding.size(), window.lhs_dilation.size(),
                       window.rhs_dilation.size(), reversal.size()}) {
    if (count != spatial) {
      reject(kOp, "the window must have one entry a spatial dimension (", spatial, "), found strides ",
             list_text(window.strides), ", padding ", padding_text(window.padding), ", lhs_dilation ",
             list_text(window.lhs_dilation), ", rhs_dilation ", list_text(window.rhs_dilation));
    }
  }
  const int64_t batch = input.dim(dims.input_batch);
  const int64_t features = kernel.dim(dims.kernel_output_feature);
  check_groups(kOp, batch, input.dim(dims.input_feature), kernel.dim(dims.kernel_input_feature), features,
               window);
  Type result{result_dtype.value_or(input.dtype()), Dims(static_cast<size_t>(rank))};
  result.dims[static_cast<size_t>(dims.output_batch)] = batch / window.batch_groups;
  result.dims[static_cast<size_t>(dims.output_feature)] = features;
  Dims windows;  // for count_flops()
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = input.dim(dims.input_spatial[i]);
    const WindowDim along{kernel.dim(dims.kernel_spatial[i]), window.strides[i],      window.padding[i].first,
                          window.padding[i].second,           window.lhs_dilation[i], window.rhs_dilation[i]};
    const int64_t places = window_places(kOp, dims.input_spatial[i], extent, along);
    result.dims[static_cast<size_t>(dims.output_spatial[i])] = places;
    windows.insert(windows.end(), {extent, places, along.size, along.stride, along.low, along.base_dilation,
                                   along.window_dilation});
  }
  const std::string numbers =
      "#stablehlo.conv<" + roles_text("b", dims.input_batch, "f", dims.input_feature, dims.input_spatial) +
      "x" + roles_text("o", dims.kernel_output_feature, "i", dims.kernel_input_feature, dims.kernel_spatial) +
      "->" + roles_text("b", dims.output_batch, "f", dims.output_feature, dims.output_spatial) + ">";
  return impl_->add(kOp, {input, kernel},
                    Attributes()
                        .ints("window_strides", window.strides)
                        .pairs("padding", window.padding)
                        .ints("lhs_dilation", window.lhs_dilation)
                        .ints("rhs_dilation", window.rhs_dilation)
                        .flags("window_reversal", reversal)
                        .raw("dimension_numbers", numbers)
                        .number("feature_group_count", window.feature_groups)
                        .number("batch_group_count", window.batch_groups)
                        .note("channels", {result.dims[static_cast<size_t>(dims.output_batch)], features,
                                           kernel.dim(dims.kernel_input_feature)})
                        .note("windows", windows)
                        .raw("precision_config", impl_->precision_text()),
                    result);
}

}  // namespace sluice::stablehlo
