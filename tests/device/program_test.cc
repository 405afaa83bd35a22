// Random programs of views, in-place operations and copies: the device against LibTorch on the CPU. With
// several replicas some inputs differ on each, and each replica is compared with a program of its own.
#include <functional>
#include <random>
#include <sstream>

#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

// Runs one program on the device and, once for each replica, on the CPU. Every decision depends on the CPU's
// tensors' shapes and the seed alone.
class Program {
 public:
  Program(uint32_t seed, bool autograd, size_t replicas = 1)
      : random_(seed), autograd_(autograd), replicas_(replicas), device_(test_device()) {
    for (int i = 0; i < 3; ++i) create();
  }

  void step() {
    if (tensors_.size() > 9) drop();
    int kind = pick(100);
    if (kind < 6) {
      create();
    } else if (kind < 46) {
      look();
    } else if (kind < 76) {
      write();
    } else if (kind < 86) {
      compute();
    } else if (kind < 91 && !autograd_) {
      rebind();
    } else if (kind < 95) {
      drop();
    } else {
      text_ << "cut\n";
      cut();
    }
  }

  // A wrong write on the device, to prove that it is seen.
  void damage() {
    create();
    tensors_.back().device.select(0, 0).add_(1);
  }

  // Compares everything; "" when it agrees.
  std::string check() {
    if (autograd_) differentiate();
    cut();
    for (const Pair& pair : tensors_) {
      std::string message = check(pair);
      if (!message.empty()) return c10::str("t", pair.id, ": ", message, "\n", text_.str());
    }
    return "";
  }

  // How many tensors the device called equal on all replicas, and how many not.
  int equal() const { return equal_; }
  int different() const { return different_; }

 private:
  struct Pair {
    std::vector<torch::Tensor> all;  // one for each replica
    torch::Tensor device;
    int id;
    const torch::Tensor& cpu() const { return all[0]; }
  };
  using Fn = std::function<torch::Tensor(const torch::Tensor&)>;

  int pick(int64_t count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  Pair& any() { return tensors_[static_cast<size_t>(pick(static_cast<int64_t>(tensors_.size())))]; }

  static std::vector<torch::Tensor> map(const Pair& pair, const Fn& fn) {
    std::vector<torch::Tensor> results;
    for (const torch::Tensor& tensor : pair.all) results.push_back(fn(tensor));
    return results;
  }

  void keep(std::vector<torch::Tensor> all, torch::Tensor device, const std::string& what) {
    text_ << "t" << count_ << " = " << what << "  " << all[0].sizes() << " " << all[0].scalar_type() << "\n";
    tensors_.push_back({std::move(all), std::move(device), count_++});
  }

  std::string check(const Pair& pair) {
    double tolerance = pair.cpu().scalar_type() == torch::kBFloat16 ? 0.03 : 1e-5;
    if (replicas_ == 1) return differs(pair.device, pair.cpu(), tolerance);
    std::vector<torch::Tensor> found;
    for (size_t r = 0; r < replicas_; ++r) {
      found.push_back(on_replica(pair.device, static_cast<int>(r)));
      std::string message = differs(found[r], pair.all[r], tolerance);
      if (!message.empty()) return c10::str("replica ", r, ": ", message);
    }
    try {
      pair.device.cpu();
      ++equal_;
    } catch (const std::exception&) {
      ++different_;
      return "";
    }
    for (const torch::Tensor& other : found) {
      if (!torch::equal(other.nan_to_num(), found[0].nan_to_num()))
        return "called equal on all replicas, but it differs";
    }
    return "";
  }

  void create() {
    std::vector<int64_t> sizes(static_cast<size_t>(1 + pick(3)));
    for (int64_t& size : sizes) size = 1 + pick(5);
    // Values are small multiples of 1/4: they survive bf16.
    const torch::ScalarType types[] = {torch::kFloat, torch::kFloat, torch::kLong, torch::kBFloat16};
    torch::ScalarType type = autograd_ ? torch::kFloat : types[pick(4)];
    bool differ = replicas_ > 1 && pick(2) == 0;
    std::vector<torch::Tensor> all;
    for (size_t r = 0; r < replicas_; ++r) {
      torch::Generator generator = at::detail::createCPUGenerator(differ || r == 0 ? random_() : 0);
      torch::Tensor values = torch::randint(-8, 9, sizes, generator, torch::kFloat) * 0.25;
      all.push_back(differ || r == 0 ? values.to(type) : all[0].clone());
    }
    torch::Tensor device = differ ? upload(all) : all[0].clone().to(device_);
    if (autograd_) {
      for (torch::Tensor& cpu : all) cpu.requires_grad_();
      device.requires_grad_();
      leaves_.push_back({all, device, count_});
      // Leaves may not be written; what is made of them may.
      for (torch::Tensor& cpu : all) cpu = cpu * 1.5;
      device = device * 1.5;
    }
    keep(all, device, differ ? "create, different on each replica" : "create");
  }

  void drop() {
    if (tensors_.size() < 3) return;
    size_t index = static_cast<size_t>(pick(static_cast<int64_t>(tensors_.size())));
    text_ << "drop t" << tensors_[index].id << "\n";
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // A random view of a shape; "" when it does not apply.
  std::pair<std::string, Fn> view_of(const torch::Tensor& t) {
    int64_t dims = t.dim();
    if (dims == 0) return {"unsqueeze(0)", [](const auto& x) { return x.unsqueeze(0); }};
    int64_t d = pick(dims), e = pick(dims), size = t.size(d);
    int which = pick(16);
    // Autograd refuses writes into one of several views that a call returns.
    if (autograd_ && (which == 3 || which == 15)) which = 12;
    switch (which) {
      case 0: {
        int64_t start = pick(size), end = start + 1 + pick(size - start), step = 1 + pick(2);
        return {c10::str("slice(", d, ",", start, ",", end, ",", step, ")"),
                [=](const auto& x) { return x.slice(d, start, end, step); }};
      }
      case 1:
        return {c10::str("transpose(", d, ",", e, ")"), [=](const auto& x) { return x.transpose(d, e); }};
      case 2: {
        int64_t index = pick(size);
        return {c10::str("select(", d, ",", index, ")"), [=](const auto& x) { return x.select(d, index); }};
      }
      case 3: {
        int64_t chunks = 1 + pick(3);
        int64_t part = pick(std::min<int64_t>(
            chunks, (size + (size + chunks - 1) / chunks - 1) / ((size + chunks - 1) / chunks)));
        return {c10::str("chunk(", chunks, ",", d, ")[", part, "]"),
                [=](const auto& x) { return x.chunk(chunks, d)[static_cast<size_t>(part)]; }};
      }
      case 4: {
        if (dims >= 4) return {};
        int64_t window = 1 + pick(size), step = 1 + pick(2);
        return {c10::str("unfold(", d, ",", window, ",", step, ")"),
                [=](const auto& x) { return x.unfold(d, window, step); }};
      }
      case 5: {
        if (dims < 2 || d == e) return {};
        return {c10::str("diagonal(0,", d, ",", e, ")"), [=](const auto& x) { return x.diagonal(0, d, e); }};
      }
      case 6: {
        if (dims >= 4) return {};
        return {c10::str("unsqueeze(", d, ")"), [=](const auto& x) { return x.unsqueeze(d); }};
      }
      case 7: {
        if (dims >= 4) return {};
        auto sizes = t.sizes().vec();
        sizes.insert(sizes.begin(), 1 + pick(3));
        return {c10::str("expand(", torch::IntArrayRef(sizes), ")"),
                [=](const auto& x) { return x.expand(sizes); }};
      }
      case 8:
        return {"squeeze", [](const auto& x) { return x.squeeze(); }};
      case 9: {
        if (!t.is_contiguous()) return {};
        return {"view(-1)", [](const auto& x) { return x.view({-1}); }};
      }
      case 10: {
        if (!t.is_contiguous() || t.numel() % 2 != 0) return {};
        return {"view(2,-1)", [](const auto& x) { return x.view({2, -1}); }};
      }
      case 11:
        return {"detach", [](const auto& x) { return x.detach(); }};
      case 12: {
        int64_t start = pick(size), length = 1 + pick(size - start);
        return {c10::str("narrow(", d, ",", start, ",", length, ")"),
                [=](const auto& x) { return x.narrow(d, start, length); }};
      }
      case 13: {
        std::vector<int64_t> order(static_cast<size_t>(dims));
        for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
        std::shuffle(order.begin(), order.end(), random_);
        return {c10::str("permute(", torch::IntArrayRef(order), ")"),
                [=](const auto& x) { return x.permute(order); }};
      }
      case 14: {
        if (autograd_) return {};
        return {"data", [](const auto& x) { return x.variable_data(); }};
      }
      default: {
        int64_t window = 1 + pick(size);
        return {c10::str("split(", window, ",", d, ")[0]"),
                [=](const auto& x) { return x.split(window, d)[0]; }};
      }
    }
  }

  void look() {
    Pair pair = any();
    auto [name, fn] = view_of(pair.cpu());
    if (!fn || (autograd_ && name == "detach")) return;
    keep(map(pair, fn), fn(pair.device), c10::str("t", pair.id, ".", name));
  }

  // A tensor whose values may be written into `pair`; a copy when they share memory.
  Pair source_for(const Pair& pair) {
    for (int tries = 0; tries < 8; ++tries) {
      Pair other = any();
      int64_t dims = other.cpu().dim();
      bool fits = dims <= pair.cpu().dim();
      for (int64_t i = 1; fits && i <= dims; ++i) {
        fits = other.cpu().size(-i) == 1 || other.cpu().size(-i) == pair.cpu().size(-i);
      }
      if (!fits) continue;
      if (!other.cpu().is_alias_of(pair.cpu())) return other;
      return {map(other, [](const auto& x) { return x.clone(); }), other.device.clone(), other.id};
    }
    return {std::vector<torch::Tensor>(replicas_, torch::ones({})), torch::ones({}, device_), -1};
  }

  // True when two elements of the tensor share memory (windows, expanded dims).
  static bool overlaps(const torch::Tensor& t) {
    int64_t places = static_cast<int64_t>(t.storage().nbytes() / t.element_size());
    torch::Tensor at = torch::arange(places).as_strided(t.sizes(), t.strides(), t.storage_offset());
    return std::get<0>(torch::_unique(at)).numel() < t.numel();
  }

  void write() {
    Pair pair = any();
    bool overlapping = overlaps(pair.cpu());
    Pair other = source_for(pair);
    double number = static_cast<double>(pick(9) - 4) * 0.5;
    int64_t whole = pick(5) - 2;
    bool floating = pair.cpu().is_floating_point();
    auto both = [&](const std::string& what,
                    const std::function<void(torch::Tensor&, const torch::Tensor&)>& fn) {
      // Overlapping windows (unfold) may be refused by the CPU; then the program goes on without.
      try {
        for (size_t r = 0; r < replicas_; ++r) fn(pair.all[r], other.all[r]);
      } catch (const c10::Error&) {
        return;
      }
      fn(pair.device, other.device);
      text_ << "t" << pair.id << "." << what << "  (with t" << other.id << ")\n";
    };
    // Where elements share memory only writes of one value have a meaning.
    switch (overlapping ? 4 + pick(2) : pick(9)) {
      case 0:
        return both(c10::str("add_(", whole, ")"), [=](auto& x, const auto&) { x.add_(whole); });
      case 1:
        return both(c10::str("mul_(", floating ? number : 1, ")"), [=](auto& x, const auto&) {
          if (floating) {
            x.mul_(number * 0.5);
          } else {
            x.mul_(whole);
          }
        });
      case 2:
        return both("copy_", [](auto& x, const auto& y) { x.copy_(y); });
      case 3:
        return both("copy_ other type", [](auto& x, const auto& y) { x.copy_(y.to(torch::kLong)); });
      case 4:
        return both(c10::str("fill_(", whole, ")"), [=](auto& x, const auto&) { x.fill_(whole); });
      case 5:
        return both("zero_", [](auto& x, const auto&) { x.zero_(); });
      case 6:
        return both("add_(tensor)",
                    [=](auto& x, const auto& y) { x.add_(floating ? y : y.to(torch::kLong)); });
      case 7:
        return both("clamp_(-4,4)", [](auto& x, const auto&) { x.clamp_(-4, 4); });
      default:
        return both("masked_fill_", [=](auto& x, const auto&) { x.masked_fill_(x > 1, whole); });
    }
  }

  void compute() {
    Pair pair = any();
    auto apply = [&](const std::string& what, const Fn& fn) {
      keep(map(pair, fn), fn(pair.device), c10::str("t", pair.id, ".", what));
    };
    switch (pick(autograd_ ? 5 : 7)) {
      case 0:
        return apply("neg", [](const auto& x) { return -x; });
      case 1:
        return apply("clone", [](const auto& x) { return x.clone(); });
      case 2:
        return apply("contiguous", [](const auto& x) { return x.contiguous(); });
      case 3:
        return apply("sum(-1)", [](const auto& x) { return (x * 0.25).sum(-1); });
      case 4:
        return apply("cat", [](const auto& x) { return torch::cat({x.reshape(-1), x.reshape(-1)}); });
      case 5:
        return apply("to(float)", [](const auto& x) { return x.to(torch::kFloat); });
      default:
        return apply("to(long)", [](const auto& x) { return x.to(torch::kLong); });
    }
  }

  // set_ and set_data: a tensor object looks at other memory from now on.
  void rebind() {
    size_t to = static_cast<size_t>(pick(static_cast<int64_t>(tensors_.size())));
    Pair from = any();
    Pair& target = tensors_[to];
    if (target.cpu().is_same(from.cpu()) || target.cpu().scalar_type() != from.cpu().scalar_type()) return;
    bool data = pick(2) == 0;
    text_ << "t" << target.id << (data ? ".set_data(t" : ".set_(t") << from.id << ")\n";
    auto bind = [data](torch::Tensor& tensor, const torch::Tensor& to_this) {
      if (data) {
        tensor.set_data(to_this);
      } else {
        tensor.set_(to_this);
      }
    };
    for (size_t r = 0; r < replicas_; ++r) bind(target.all[r], from.all[r]);
    bind(target.device, from.device);
  }

  // The sum of everything alive, weighted, backwards into the leaves, which are then compared too.
  void differentiate() {
    std::vector<torch::Tensor> sums(replicas_, torch::zeros({}));
    torch::Tensor device = torch::zeros({}, device_);
    double weight = 0.25;
    for (Pair& pair : tensors_) {
      for (size_t r = 0; r < replicas_; ++r) sums[r] = sums[r] + pair.all[r].sum() * weight;
      device = device + pair.device.sum() * weight;
      weight += 0.25;
    }
    text_ << "backward\n";
    if (!sums[0].requires_grad()) return;
    try {
      for (torch::Tensor& sum : sums) sum.backward();
    } catch (const c10::Error&) {
      return;  // LibTorch itself cannot go back through a filled expanded view
    }
    device.backward();
    for (Pair& leaf : leaves_) {
      if (!leaf.cpu().grad().defined()) continue;
      tensors_.push_back(
          {map(leaf, [](const auto& x) { return x.grad(); }), leaf.device.grad(), 1000 + leaf.id});
    }
  }

  std::mt19937 random_;
  bool autograd_;
  size_t replicas_;
  torch::Device device_;
  std::vector<Pair> tensors_, leaves_;
  int count_ = 0, equal_ = 0, different_ = 0;
  std::ostringstream text_;
};

struct Seen {
  int equal = 0, different = 0;
};

Seen run_programs(int count, uint32_t first, bool autograd, size_t replicas = 1) {
  Seen seen;
  for (int i = 0; i < count; ++i) {
    uint32_t seed = first + static_cast<uint32_t>(i);
    Program program(seed, autograd, replicas);
    try {
      for (int step = 0; step < 30; ++step) program.step();
      std::string message = program.check();
      EXPECT_EQ(message, "") << "seed " << seed;
      if (!message.empty()) break;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
      break;
    }
    seen.equal += program.equal();
    seen.different += program.different();
  }
  return seen;
}

TEST(Programs, ViewsAndInPlaceWritesMatchTheCpu) { run_programs(rounds(40), 1000, false); }

TEST(Programs, AWrongWriteIsSeen) {
  Program program(7, false);
  for (int step = 0; step < 10; ++step) program.step();
  program.damage();
  EXPECT_NE(program.check(), "");
}

TEST(Programs, GradientsThroughWrittenViewsMatchTheCpu) { run_programs(rounds(20), 5000, true); }

TEST(Programs, ReplicasHoldTheirOwnValuesAndWhatIsCalledEqualIs) {
  if (on_cpu()) GTEST_SKIP();
  DeviceOptions options;
  options.devices = 4;
  restart(options);
  Seen plain = run_programs(rounds(12), 9000, false, 4);
  Seen gradients = run_programs(rounds(6), 9500, true, 4);
  EXPECT_GT(plain.equal, 0);
  EXPECT_GT(plain.different, 0);
  EXPECT_GT(gradients.different, 0);
  restart();
}

// Views begin at constant places again, however many devices there were before: else later programs would be
// others, which no cache has, and would read twice what is one value.
TEST(Programs, OfALaterDeviceAreThoseOfTheFirst) {
  if (on_cpu()) GTEST_SKIP();
  std::string first;
  for (int device = 0; device < 7; ++device) {
    const DumpedPrograms programs;
    const auto x = torch::ones({3, 4}).to(test_device());
    const auto y = x.select(0, 1) * x.select(0, 2);
    cut();
    ASSERT_EQ(programs.all().size(), 1u);
    const std::string text = base::value_or_throw(base::read_file(programs.all()[0]));
    if (device == 0) first = text;
    EXPECT_EQ(text, first) << device;
  }
  restart();
}

}  // namespace
}  // namespace sluice::tests
