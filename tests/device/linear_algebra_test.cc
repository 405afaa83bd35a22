// What samples of single operations cannot say: the products of factors whose signs are free, larger
// matrices, and complex numbers that are views of real ones.
#include <cmath>

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using torch::Tensor;

Tensor random(at::IntArrayRef sizes, at::ScalarType type = torch::kDouble) {
  return torch::randn(sizes, at::TensorOptions().dtype(type));
}

Tensor identity(int64_t n) { return torch::eye(n, torch::kDouble); }

// Orthonormal columns.
void expect_orthogonal(const Tensor& q, double tolerance) {
  const Tensor host = q.cpu().to(torch::kDouble), square = host.mT().matmul(host);
  expect_same(square, identity(q.size(-1)).expand_as(square).contiguous(), tolerance);
}

TEST(SingularValues, TheirFactorsMakeTheMatrix) {
  torch::manual_seed(1);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{24, 15}, {15, 24}, {3, 7, 5}, {1, 6}}) {
    for (const bool full : {false, true}) {
      if (full == (sizes.size() == 3)) continue;  // each compiles a program for seconds
      const Tensor a = random(sizes);
      const auto [u, s, vh] = torch::linalg_svd(a.to(test_device()), full);
      const int64_t count = s.size(-1);
      const Tensor made = (u.narrow(-1, 0, count) * s.unsqueeze(-2)).matmul(vh.narrow(-2, 0, count));
      expect_same(made, a, 1e-10);
      expect_same(s, torch::linalg_svdvals(a), 1e-10);
      expect_orthogonal(u, 1e-10);
      expect_orthogonal(vh.mT(), 1e-10);
    }
  }
}

TEST(SingularValues, OfRankDeficientMatricesHaveOrthogonalVectors) {
  torch::manual_seed(2);
  const Tensor thin = random({20, 3});
  // Of one shape, so that they are one program.
  for (const Tensor& a : {thin.matmul(random({3, 12})), torch::zeros({20, 12}, torch::kDouble),
                          torch::ones({20, 12}, torch::kDouble), torch::eye(20, 12, torch::kDouble) * 1e-200,
                          torch::eye(20, 12, torch::kDouble) * 1e200}) {
    const auto [u, s, vh] = torch::linalg_svd(a.to(test_device()), /*full_matrices=*/true);
    expect_same(s, torch::linalg_svdvals(a), 1e-10);
    expect_orthogonal(u, 1e-10);
    expect_orthogonal(vh.mT(), 1e-10);
  }
}

TEST(Eigenvalues, TheirVectorsMakeTheMatrix) {
  torch::manual_seed(3);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{33, 33}, {3, 4, 4}, {1, 1}}) {
    Tensor a = random(sizes);
    a = a + a.mT();
    const auto [values, vectors] = torch::linalg_eigh(a.to(test_device()));
    expect_same((vectors * values.unsqueeze(-2)).matmul(vectors.mT()), a, 1e-10);
    expect_same(values, torch::linalg_eigvalsh(a), 1e-10);
    expect_orthogonal(vectors, 1e-10);
  }
}

TEST(Eigenvalues, EqualOnesAndFloatsConverge) {
  torch::manual_seed(4);
  const Tensor q = std::get<0>(torch::linalg_qr(random({30, 30})));
  const Tensor twice = torch::cat({torch::ones(15), torch::full({15}, -2)}).to(torch::kDouble);
  const Tensor a = (q * twice).matmul(q.mT()).to(torch::kFloat);
  const auto [values, vectors] = torch::linalg_eigh(a.to(test_device()));
  expect_same(values, std::get<0>(twice.sort()).to(torch::kFloat), 1e-4);
  expect_same((vectors * values).matmul(vectors.mT()), a, 1e-4);
}

// The gradient of a function of the matrix that does not depend on the vectors' signs.
TEST(Eigenvalues, GradientsThroughVectors) {
  torch::manual_seed(5);
  const Tensor a = random({5, 5}), weight = random({5, 5});
  const auto gradient = [&](const torch::Device& device) {
    Tensor x = a.to(device).detach().requires_grad_();
    const auto [values, vectors] = torch::linalg_eigh(x + x.mT());
    ((vectors * values.exp()).matmul(vectors.mT()) * weight.to(device)).sum().backward();
    return x.grad();
  };
  expect_same(gradient(test_device()), gradient(torch::kCPU), 1e-8);
}

TEST(SingularValuesGradients, ThroughBothFactors) {
  torch::manual_seed(6);
  const Tensor a = random({6, 4}), weight = random({6, 4});
  const auto gradient = [&](const torch::Device& device) {
    Tensor x = a.to(device).detach().requires_grad_();
    const auto [u, s, vh] = torch::linalg_svd(x, false);
    ((u * s.sqrt()).matmul(vh) * weight.to(device)).sum().backward();
    return x.grad();
  };
  expect_same(gradient(test_device()), gradient(torch::kCPU), 1e-8);
}

TEST(LinearSystems, OfLargerMatrices) {
  torch::manual_seed(7);
  const Tensor a = random({100, 100}), b = random({100, 3}), positive = a.matmul(a.mT()) + identity(100);
  const torch::Device device = test_device();
  expect_same(torch::linalg_solve(a.to(device), b.to(device)), torch::linalg_solve(a, b), 1e-8);
  expect_same(torch::linalg_cholesky(positive.to(device)), torch::linalg_cholesky(positive), 1e-9);
  expect_same(torch::linalg_inv(positive.to(device)), torch::linalg_inv(positive), 1e-8);
  expect_same(std::get<1>(torch::linalg_qr(a.to(device))), std::get<1>(torch::linalg_qr(a)), 1e-8);
  expect_same(std::get<1>(torch::linalg_slogdet(a.to(device))), std::get<1>(torch::linalg_slogdet(a)), 1e-8);
}

// What expect_same compares, for complex numbers.
void expect_same_complex(const Tensor& found, const Tensor& expected, double tolerance) {
  expect_same(torch::view_as_real(found.cpu().resolve_conj()), torch::view_as_real(expected.resolve_conj()),
              tolerance);
}

TEST(HermitianMatrices, TheirVectorsMakeTheMatrix) {
  torch::manual_seed(8);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{13, 13}, {2, 4, 4}}) {
    Tensor a = random(sizes, torch::kComplexDouble);
    a = a + a.mH();
    const auto [values, vectors] = torch::linalg_eigh(a.to(test_device()));
    expect_same(values, torch::linalg_eigvalsh(a), 1e-10);
    expect_same_complex((vectors * values.unsqueeze(-2)).matmul(vectors.mH()), a, 1e-10);
    expect_same_complex(vectors.mH().matmul(vectors),
                        torch::eye(sizes.back(), torch::kComplexDouble).expand(sizes), 1e-10);
  }
  // Equal eigenvalues: any orthonormal vectors of their space are right.
  const Tensor q = std::get<0>(torch::linalg_qr(random({8, 8}, torch::kComplexDouble)));
  const Tensor twice = torch::tensor({1., 1., 1., 1., -2., -2., 0., 0.}, torch::kDouble);
  const Tensor a = (q * twice).matmul(q.mH());
  const auto [values, vectors] = torch::linalg_eigh(a.to(test_device()));
  expect_same(values, std::get<0>(twice.sort()), 1e-10);
  expect_same_complex((vectors * values).matmul(vectors.mH()), a, 1e-10);
}

TEST(ComplexSingularValues, TheirFactorsMakeTheMatrix) {
  torch::manual_seed(9);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{9, 6}, {2, 3, 5}}) {
    const Tensor a = random(sizes, torch::kComplexDouble);
    const auto [u, s, vh] = torch::linalg_svd(a.to(test_device()), /*full_matrices=*/false);
    expect_same(s, torch::linalg_svdvals(a), 1e-10);
    expect_same_complex((u * s.unsqueeze(-2)).matmul(vh), a, 1e-10);
    const Tensor one = torch::eye(s.size(-1), torch::kComplexDouble);
    expect_same_complex(u.mH().matmul(u), one.expand_as(u.mH().matmul(u)), 1e-10);
    expect_same_complex(vh.matmul(vh.mH()), one.expand_as(vh.matmul(vh.mH())), 1e-10);
  }
}

// The gradients of functions that do not depend on the vectors' phases.
TEST(HermitianMatrices, GradientsThroughVectors) {
  torch::manual_seed(10);
  const Tensor a = random({4, 4}, torch::kComplexDouble), weight = random({4, 4}, torch::kComplexDouble);
  const auto gradient = [&](const torch::Device& device) {
    Tensor x = a.to(device).detach().requires_grad_();
    const auto [values, vectors] = torch::linalg_eigh(x + x.mH());
    torch::real((vectors * values.exp()).matmul(vectors.mH()) * weight.to(device)).sum().backward();
    return x.grad();
  };
  expect_same_complex(gradient(test_device()), gradient(torch::kCPU), 1e-8);
}

// Whether they succeeded is looked at when the host next waits or reads.
TEST(LinearSystems, InALoopReadNothing) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  restart();
  const Tensor a = random({5, 5}), b = random({2, 3, 3}), right = random({5, 2});
  Tensor x = a.to(test_device()), y = b.to(test_device()), z = right.to(test_device());
  const Counters before = counters();
  for (int i = 0; i < 6; ++i) {
    x = torch::inverse(x);
    y = torch::linalg_inv(y);
    z = torch::linalg_solve(x, z);
  }
  EXPECT_EQ(counters().host_reads, before.host_reads);
  EXPECT_EQ(counters().cuts, before.cuts);
  expect_same(x, a, 1e-6);
  expect_same(y, b, 1e-6);
  EXPECT_EQ(counters().cuts, before.cuts + 1);
}

TEST(LinearSystems, ThatFailAreFoundAtTheNextRead) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const auto singular = testing::HasSubstr("linalg.inv: (Batch element 1): The diagonal element 1 is zero");
  const Tensor b = torch::stack({identity(3), torch::zeros({3, 3}, torch::kDouble), identity(3)});
  const auto invert = [&] { return torch::linalg_inv(b.to(test_device())); };
  Tensor inverse = invert();
  EXPECT_THAT(thrown([&] { inverse.cpu(); }), singular);
  EXPECT_EQ(thrown([&] { inverse.cpu(); }), "");  // said once
  inverse = invert();
  sync("step");
  EXPECT_THAT(thrown([&] { wait(); }), singular);
  // A program may catch a factorization's error and try another matrix.
  const Tensor negative = identity(2).neg().to(test_device());
  EXPECT_THAT(thrown([&] { torch::linalg_cholesky(negative); }),
              testing::HasSubstr("The factorization could not be completed"));
  DeviceOptions options;
  options.eager = true;
  restart(options);
  EXPECT_THAT(thrown([&] { invert(); }), singular);
  options.eager = false;
  options.check = false;
  restart(options);
  EXPECT_EQ(thrown([&] { invert().cpu(); }), "");
  restart();
}

TEST(ComplexNumbers, AreViewsOfPairs) {
  const torch::Device device = test_device();
  Tensor pairs = ramp({3, 2}).to(device), host = ramp({3, 2});
  Tensor z = torch::view_as_complex(pairs), w = torch::view_as_complex(host);
  pairs.select(1, 0).add_(10);
  host.select(1, 0).add_(10);
  expect_same(torch::view_as_real(z), torch::view_as_real(w), 0);
  z.mul_(c10::complex<float>(0, 1));
  w.mul_(c10::complex<float>(0, 1));
  expect_same(pairs, host, 1e-6);
  torch::imag(z).fill_(7);
  torch::imag(w).fill_(7);
  expect_same(pairs, host, 1e-6);
}

TEST(ComplexNumbers, TravelBothWays) {
  const torch::Device device = test_device();
  const Tensor z = random({3, 4}, torch::kComplexDouble);
  expect_same(torch::view_as_real(z.to(device).cpu()), torch::view_as_real(z), 0);
  expect_same(torch::view_as_real(z.conj().to(device).cpu().resolve_conj()),
              torch::view_as_real(z.conj().resolve_conj()), 0);
  expect_same(torch::view_as_real(z.to(device).conj().cpu().resolve_conj()),
              torch::view_as_real(z.conj().resolve_conj()), 0);
  Tensor into = torch::zeros({3, 4}, at::TensorOptions().dtype(torch::kComplexDouble).device(device));
  into.conj().copy_(z);
  expect_same(torch::view_as_real(into.cpu()), torch::view_as_real(z.conj().resolve_conj()), 0);
  EXPECT_EQ(z.to(device).select(0, 1).select(0, 2).item<c10::complex<double>>(),
            z.select(0, 1).select(0, 2).item<c10::complex<double>>());
}

TEST(ComplexNumbers, WithConstantsOfTheProgram) {
  const torch::Device device = test_device();
  const Tensor z = random({4}, torch::kComplexDouble), x = random({4});
  const c10::complex<double> i(0.5, -2);
  const auto compare = [](const Tensor& found, const Tensor& expected) {
    expect_same(torch::view_as_real(found.cpu()), torch::view_as_real(expected), 1e-10);
  };
  compare(z.to(device) + i, z + i);
  compare(x.to(device) * i, x * i);
  compare(z.to(device).pow(i), z.pow(i));
  compare(torch::full({3}, i, device), torch::full({3}, i));
  EXPECT_ANY_THROW(x.to(device).fill_(i));
}

}  // namespace
}  // namespace sluice::tests
