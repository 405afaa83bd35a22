// Matrix products. bf16 and f16 are multiplied directly (XLA accumulates them in f32); additions and scalings
// after the product are computed in f32. With `beta` 0 the added tensor is not read, as in LibTorch, so that
// its NaNs do not count.
#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

void check_rank(Emit& e, std::string_view name, int64_t rank) {
  const Value x = e.tensor(name);
  e.check(x.rank() == rank, base::str("expected ", rank, " dimensions for '", name, "', found ", x.rank(),
                                      " (", in_words(x), ")"));
}

void check_same_type(Emit& e, Value a, Value b) {
  e.check(a.dtype() == b.dtype(), base::str("expected operands of one element type, found ", in_words(a),
                                            " and ", in_words(b), "; convert one of them with .to()"));
}

Value product(Emit& e, Value a, Value b, const stablehlo::DotDims& dims) {
  check_same_type(e, a, b);
  const auto same = [&](const Dims& left, const Dims& right) {
    for (size_t i = 0; i < left.size(); ++i)
      if (a.dim(left[i]) != b.dim(right[i])) return false;
    return true;
  };
  e.check(same(dims.lhs_batch, dims.rhs_batch) && same(dims.lhs_contract, dims.rhs_contract),
          base::str("shapes cannot be multiplied: ", in_words(a), " and ", in_words(b)));
  return e.b.dot_general(a, b, dims);
}

Value matrix_product(Emit& e, std::string_view left, std::string_view right) {
  check_rank(e, left, 2);
  check_rank(e, right, 2);
  return product(e, e.tensor(left), e.tensor(right), {.lhs_contract = {1}, .rhs_contract = {0}});
}

Value batched_product(Emit& e, std::string_view left, std::string_view right) {
  check_rank(e, left, 3);
  check_rank(e, right, 3);
  return product(e, e.tensor(left), e.tensor(right),
                 {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}});
}

// Returns x times a number argument; x itself if the number is the constant 1.
Value scaled(Emit& e, Value x, std::string_view factor) {
  if (e.is_constant(factor, 1)) return x;
  return e.b.multiply(x, e.scalar(factor, x.dtype(), x.dims()));
}

// Returns beta * self + alpha * product, in the product's type; self is broadcast.
Values add_scaled(Emit& e, Value product) {
  const Value self = e.tensor("self");
  check_same_type(e, self, product);
  if (e.is_constant("beta", 0) && e.is_constant("alpha", 1)) return {product};
  const DType compute = compute_type(product.dtype());
  Value sum = scaled(e, to(e.b, product, compute), "alpha");
  if (!e.is_constant("beta", 0)) {
    const Value added = e.b.broadcast(to(e.b, self, compute), product.dims());
    sum = e.b.add(scaled(e, added, "beta"), sum);
  }
  return {to(e.b, sum, product.dtype())};
}

Values mm(Emit& e) { return {matrix_product(e, "self", "mat2")}; }
Values bmm(Emit& e) { return {batched_product(e, "self", "mat2")}; }
Values addmm(Emit& e) { return add_scaled(e, matrix_product(e, "mat1", "mat2")); }
Values baddbmm(Emit& e) { return add_scaled(e, batched_product(e, "batch1", "batch2")); }

// Sums the batch's products: one product that contracts the batch too.
Values addbmm(Emit& e) {
  check_rank(e, "batch1", 3);
  check_rank(e, "batch2", 3);
  return add_scaled(e, product(e, e.tensor("batch1"), e.tensor("batch2"),
                               {.lhs_contract = {0, 2}, .rhs_contract = {0, 1}}));
}

// Computes the product of two vectors as a sum of products: on a CPU XLA adds a dot product's terms one by
// one, but a sum's terms in parts.
Value vector_product(Emit& e, Value self, Value other) {
  Builder& b = e.b;
  check_same_type(e, self, other);
  e.check(self.dim(0) == other.dim(0),
          base::str("shapes cannot be multiplied: ", in_words(self), " and ", in_words(other)));
  const DType compute = compute_type(self.dtype());
  return to(b, b.reduce_sum(b.multiply(to(b, self, compute), to(b, other, compute)), {0}), self.dtype());
}

Values addmv(Emit& e) {
  check_rank(e, "mat", 2);
  check_rank(e, "vec", 1);
  const Value mat = e.tensor("mat"), vec = e.tensor("vec");
  if (mat.dim(0) != 1) return add_scaled(e, product(e, mat, vec, {.lhs_contract = {1}, .rhs_contract = {0}}));
  const Value of_row = vector_product(e, e.b.reshape(mat, {mat.dim(1)}), vec);
  return add_scaled(e, e.b.reshape(of_row, {1}));
}

void check_vectors(Emit& e, std::string_view other) {
  check_rank(e, "self", 1);
  check_rank(e, other, 1);
}
Values dot(Emit& e) {
  check_vectors(e, "tensor");
  return {vector_product(e, e.tensor("self"), e.tensor("tensor"))};
}
Values vdot(Emit& e) {
  check_vectors(e, "other");
  return {vector_product(e, e.b.conjugate(e.tensor("self")), e.tensor("other"))};
}

// Multiplies int8 by int8 into int32.
Values int_mm(Emit& e) {
  check_rank(e, "self", 2);
  check_rank(e, "mat2", 2);
  return {product(e, to(e.b, e.tensor("self"), DType::kS32), to(e.b, e.tensor("mat2"), DType::kS32),
                  {.lhs_contract = {1}, .rhs_contract = {0}})};
}

Value with_ones_at(Builder& b, Value x, const Dims& positions) {
  Dims dims = x.dims();
  for (int64_t position : positions) dims.insert(dims.begin() + position, 1);
  return b.reshape(x, dims);
}

// Computes the bilinear layer's product: three tensors get dimensions of size 1, and are multiplied and
// summed.
Values trilinear(Emit& e) {
  Builder& b = e.b;
  const DType dtype = e.promote({"i1", "i2", "i3"});
  Values parts;
  for (auto [name, expand] : {std::pair{"i1", "expand1"}, {"i2", "expand2"}, {"i3", "expand3"}})
    parts.push_back(with_ones_at(b, to(b, e.tensor(name), compute_type(dtype)), e.ints(expand)));
  parts = broadcast_together(b, parts);
  const Value all = b.multiply(b.multiply(parts[0], parts[1]), parts[2]);
  return {to(b, b.reduce_sum(all, wrap_dims(e.ints("sumdim"), all.rank(), false)), dtype)};
}

// Returns the vector product along a dimension of size 3: result[i] = x[i + 1] y[i + 2] - x[i + 2] y[i + 1].
Values cross(Emit& e) {
  Builder& b = e.b;
  Value x = e.tensor("self"), y = e.tensor("other");
  check_same_type(e, x, y);
  check_rank(e, "other", x.rank());
  const int64_t dim = wrap_dim(e.integer("dim"), x.rank());
  e.check(x.dim(dim) == 3 && y.dim(dim) == 3,
          base::str("expected 3 elements in dimension ", dim, ", found ", in_words(x), " and ", in_words(y)));
  const Values v = operands(e, compute_type(x.dtype()), {"self", "other"});
  auto rotated = [&](Value value, int64_t by) {
    const Value parts[] = {b.slice_dim(value, dim, by, 3), b.slice_dim(value, dim, 0, by)};
    return b.concatenate(parts, dim);
  };
  Value left = b.multiply(rotated(v[0], 1), rotated(v[1], 2));
  Value right = b.multiply(rotated(v[0], 2), rotated(v[1], 1));
  return {to(b, b.subtract(left, right), x.dtype())};
}

constexpr std::string_view kFactors = "beta alpha";
constexpr Row kMatmulRows[] = {
    {.name = "aten::mm", .emit = mm},
    {.name = "aten::bmm", .emit = bmm},
    {.name = "aten::addmm", .emit = addmm, .constant_if_zero = "beta", .constant_if_one = kFactors},
    {.name = "aten::baddbmm", .emit = baddbmm, .constant_if_zero = "beta", .constant_if_one = kFactors},
    {.name = "aten::addbmm", .emit = addbmm, .constant_if_zero = "beta", .constant_if_one = kFactors},
    {.name = "aten::addmv", .emit = addmv, .constant_if_zero = "beta", .constant_if_one = kFactors},
    {.name = "aten::dot", .emit = dot},
    {.name = "aten::vdot", .emit = vdot},
    {.name = "aten::_int_mm", .emit = int_mm},
    {.name = "aten::_trilinear", .emit = trilinear},
    {.name = "aten::linalg_cross", .emit = cross},
};

}  // namespace

std::span<const Row> matmul_rows() { return kMatmulRows; }

}  // namespace sluice::ops
