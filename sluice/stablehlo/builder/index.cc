// Operations that pick or place elements at indices found at run time.
#include <algorithm>

#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

constexpr int64_t kMissing = -1;

bool contains(const Dims& list, int64_t dim) {
  return std::find(list.begin(), list.end(), dim) != list.end();
}

// Throws unless the list is strictly increasing (if not `sorted`: without repetition) and within [0, rank).
void check_dims(std::string_view op, std::string_view what, const Dims& list, int64_t rank, bool sorted) {
  for (size_t i = 0; i < list.size(); ++i) {
    const bool repeated = std::find(list.begin(), list.begin() + static_cast<int64_t>(i), list[i]) !=
                          list.begin() + static_cast<int64_t>(i);
    if (list[i] < 0 || list[i] >= rank || repeated || (sorted && i > 0 && list[i] < list[i - 1])) {
      reject(op, what, " must be ", sorted ? "increasing" : "different", " dimensions below ", rank,
             ", found ", list_text(list));
    }
  }
}

void check_indices(std::string_view op, Value indices, int64_t vector_dim, const Dims& map,
                   int64_t operand_rank, std::string_view map_name) {
  if (!is_integer(indices.dtype())) reject(op, "indices must be integers, found ", indices.type().str());
  if (vector_dim < 0 || vector_dim > indices.rank()) {
    reject(op, "index_vector_dim must be at most the rank of the indices, found ", vector_dim, " for ",
           indices.type().str());
  }
  check_dims(op, map_name, map, operand_rank, false);
  const int64_t length = vector_dim == indices.rank() ? 1 : indices.dim(vector_dim);
  if (static_cast<int64_t>(map.size()) != length) {
    reject(op, map_name, " must have one entry for each number of an index (", length, "), found ",
           list_text(map));
  }
}

// Returns the indices' dimensions without the one that holds the numbers of an index.
Dims batch_dims(Value indices, int64_t vector_dim) {
  Dims dims = indices.dims();
  if (vector_dim < indices.rank()) dims.erase(dims.begin() + vector_dim);
  return dims;
}

void check_starts(std::string_view op, Value x, std::span<const Value> starts) {
  if (static_cast<int64_t>(starts.size()) != x.rank()) {
    reject(op, "there must be one start a dimension of ", x.type().str(), ", found ", starts.size());
  }
  for (Value start : starts) {
    if (start.rank() != 0 || !is_integer(start.dtype()) || start.dtype() != starts[0].dtype()) {
      reject(op, "starts must be integer scalars of one type, found ", start.type().str());
    }
  }
}

// Builds "#stablehlo.gather<offset_dims = [1], …>"; empty lists are left out.
class Numbers {
 public:
  explicit Numbers(std::string_view name) : text_("#stablehlo." + std::string(name) + "<") {}
  Numbers& list(std::string_view name, const Dims& dims) {
    return dims.empty() ? *this : put(name, list_text(dims));
  }
  Numbers& number(std::string_view name, int64_t value) { return put(name, std::to_string(value)); }
  std::string text() const { return text_ + ">"; }

 private:
  Numbers& put(std::string_view name, const std::string& text) {
    if (text_.back() != '<') text_ += ", ";
    text_.append(name).append(" = ").append(text);
    return *this;
  }
  std::string text_;
};

}  // namespace

Value Builder::dynamic_slice(Value x, std::span<const Value> starts, const Dims& sizes) {
  constexpr std::string_view kOp = "stablehlo.dynamic_slice";
  impl_->use(kOp, x);
  impl_->use(kOp, starts);
  check_starts(kOp, x, starts);
  if (static_cast<int64_t>(sizes.size()) != x.rank()) {
    reject(kOp, "sizes must have one entry a dimension of ", x.type().str(), ", found ", list_text(sizes));
  }
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    if (size < 0 || size > x.dim(i)) {
      reject(kOp, "size ", size, " of dimension ", i, " is outside 0…", x.dim(i), " of ", x.type().str());
    }
  }
  if (x.dims() == sizes) return x;  // starts are clamped to 0
  Values operands = {x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return impl_->add(kOp, operands, Attributes().ints("slice_sizes", sizes),
                    impl_->intern({x.dtype(), sizes}));
}

Value Builder::dynamic_update_slice(Value x, Value update, std::span<const Value> starts) {
  constexpr std::string_view kOp = "stablehlo.dynamic_update_slice";
  impl_->use(kOp, {x, update});
  impl_->use(kOp, starts);
  check_starts(kOp, x, starts);
  bool fits = update.dtype() == x.dtype() && update.rank() == x.rank();
  for (int64_t i = 0; fits && i < x.rank(); ++i) fits = update.dim(i) <= x.dim(i);
  if (!fits) {
    reject(kOp, "the update must have the operand's element type and rank and fit into it, found ",
           update.type().str(), " for ", x.type().str());
  }
  if (update.dims() == x.dims()) return update;
  Values operands = {x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return impl_->add(kOp, operands, {}, impl_->entry(x));
}

Value Builder::gather(Value x, Value indices, const GatherDims& dims) {
  constexpr std::string_view kOp = "stablehlo.gather";
  impl_->use(kOp, {x, indices});
  check_indices(kOp, indices, dims.index_vector_dim, dims.start_index_map, x.rank(), "start_index_map");
  check_dims(kOp, "collapsed_slice_dims", dims.collapsed_slice_dims, x.rank(), true);
  if (static_cast<int64_t>(dims.slice_sizes.size()) != x.rank() ||
      dims.offset_dims.size() + dims.collapsed_slice_dims.size() != dims.slice_sizes.size()) {
    reject(kOp, "slice_sizes must have one entry a dimension of ", x.type().str(),
           ", each either in offset_dims' place or collapsed; found slice_sizes ",
           list_text(dims.slice_sizes), ", offset_dims ", list_text(dims.offset_dims),
           ", collapsed_slice_dims ", list_text(dims.collapsed_slice_dims));
  }
  Dims offsets;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t size = dims.slice_sizes[static_cast<size_t>(i)];
    const bool collapsed = contains(dims.collapsed_slice_dims, i);
    if (size < 0 || size > x.dim(i) || (collapsed && size > 1)) {
      reject(kOp, "slice size ", size, " of dimension ", i, " is outside 0…", collapsed ? 1 : x.dim(i),
             " of ", x.type().str(), collapsed ? " (the dimension is collapsed)" : "");
    }
    if (!collapsed) offsets.push_back(size);
  }
  const Dims batch = batch_dims(indices, dims.index_vector_dim);
  Type result{x.dtype(), Dims(batch.size() + offsets.size(), kMissing)};
  check_dims(kOp, "offset_dims", dims.offset_dims, result.rank(), true);
  for (size_t i = 0; i < offsets.size(); ++i)
    result.dims[static_cast<size_t>(dims.offset_dims[i])] = offsets[i];
  auto next = batch.begin();
  for (int64_t& dim : result.dims) {
    if (dim == kMissing) dim = *next++;
  }
  const std::string numbers = Numbers("gather")
                                  .list("offset_dims", dims.offset_dims)
                                  .list("collapsed_slice_dims", dims.collapsed_slice_dims)
                                  .list("start_index_map", dims.start_index_map)
                                  .number("index_vector_dim", dims.index_vector_dim)
                                  .text();
  return impl_->add(kOp, {x, indices},
                    Attributes()
                        .raw("dimension_numbers", numbers)
                        .note("offset_dims", dims.offset_dims)
                        .note("collapsed_slice_dims", dims.collapsed_slice_dims)
                        .note("start_index_map", dims.start_index_map)
                        .note("index_vector_dim", {dims.index_vector_dim})
                        .ints("slice_sizes", dims.slice_sizes)
                        .flag("indices_are_sorted", dims.indices_are_sorted),
                    result);
}

Value Builder::scatter(Value x, Value indices, Value updates, const ScatterDims& dims, const Region& body) {
  constexpr std::string_view kOp = "stablehlo.scatter";
  impl_->use(kOp, {x, indices, updates});
  if (updates.dtype() != x.dtype()) {
    reject(kOp, "updates must have the operand's element type, found ", updates.type().str(), " for ",
           x.type().str());
  }
  check_indices(kOp, indices, dims.index_vector_dim, dims.scatter_dims_to_operand_dims, x.rank(),
                "scatter_dims_to_operand_dims");
  check_dims(kOp, "inserted_window_dims", dims.inserted_window_dims, x.rank(), true);
  check_dims(kOp, "update_window_dims", dims.update_window_dims, updates.rank(), true);
  const Dims batch = batch_dims(indices, dims.index_vector_dim);
  const size_t windows = dims.update_window_dims.size();
  if (static_cast<int64_t>(windows + dims.inserted_window_dims.size()) != x.rank() ||
      static_cast<int64_t>(batch.size() + windows) != updates.rank()) {
    reject(
        kOp,
        "every dimension of the operand must be in a window or inserted, and updates must have the indices' "
        "batch dimensions and the window's; found operand ",
        x.type().str(), ", indices ", indices.type().str(), ", updates ", updates.type().str(),
        ", update_window_dims ", list_text(dims.update_window_dims), ", inserted_window_dims ",
        list_text(dims.inserted_window_dims));
  }
  int64_t window = 0;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (contains(dims.inserted_window_dims, i)) continue;
    const int64_t from = dims.update_window_dims[static_cast<size_t>(window++)];
    if (updates.dim(from) > x.dim(i)) {
      reject(kOp, "dimension ", from, " of the updates ", updates.type().str(), " is larger than dimension ",
             i, " of the operand ", x.type().str());
    }
  }
  auto next = batch.begin();
  for (int64_t i = 0; i < updates.rank(); ++i) {
    if (!contains(dims.update_window_dims, i) && updates.dim(i) != *next++) {
      reject(kOp, "the updates ", updates.type().str(), " do not have the batch dimensions ",
             list_text(batch), " of the indices ", indices.type().str());
    }
  }
  const TypeEntry* scalar = impl_->intern({x.dtype(), {}});
  Impl::Body made = impl_->reducer(kOp, {&scalar, 1}, body);
  const std::string numbers = Numbers("scatter")
                                  .list("update_window_dims", dims.update_window_dims)
                                  .list("inserted_window_dims", dims.inserted_window_dims)
                                  .list("scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims)
                                  .number("index_vector_dim", dims.index_vector_dim)
                                  .text();
  const Values operands = {x, indices, updates};
  const TypeEntry* result = impl_->entry(x);
  return impl_
      ->add(kOp, operands, {&made, 1},
            Attributes()
                .raw("scatter_dimension_numbers", numbers)
                .note("update_window_dims", dims.update_window_dims)
                .note("inserted_window_dims", dims.inserted_window_dims)
                .note("scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims)
                .note("index_vector_dim", {dims.index_vector_dim})
                .flag("indices_are_sorted", dims.indices_are_sorted)
                .flag("unique_indices", dims.unique_indices),
            {&result, 1})
      .front();
}

}  // namespace sluice::stablehlo
