// A training step laid out over four devices of XLA's CPU plugin: its values are those of the same program on
// one device, its weights and their momentum are held in blocks, and its memory is reused.
#include "sluice/stablehlo/partitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "sluice/pjrt/testing/programs.h"
#include "sluice/stablehlo/builder.h"
#include "tests/stablehlo/relative_error.h"

namespace sluice::stablehlo {
namespace {

using pjrt::Buffer;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 8, kIn = 16, kHidden = 32, kOut = 8;
constexpr size_t kKept = 4;  // two weights and their momentum; then x and y

Type f32(const Dims& dims) { return {DType::kF32, dims}; }

const std::vector<Type>& argument_types() {
  static const auto* all =
      new std::vector<Type>{f32({kIn, kHidden}),  f32({kHidden, kOut}), f32({kIn, kHidden}),
                            f32({kHidden, kOut}), f32({kBatch, kIn}),   f32({kBatch, kOut})};
  return *all;
}

// One step of SGD with momentum for the mean of (tanh(x w1) w2 - y)²; the weights and the momentum are
// replaced, and the loss is the last result.
std::string training_step() {
  Builder b;
  std::vector<Value> in;
  for (const Type& type : argument_types()) in.push_back(b.parameter(type));
  const Value w1 = in[0], w2 = in[1], x = in[4], y = in[5];
  const auto product = [&](Value a, int64_t of_a, Value c, int64_t of_c) {
    return b.dot_general(a, c, {.lhs_contract = {of_a}, .rhs_contract = {of_c}});
  };
  const auto times = [&](Value a, double factor) { return b.multiply(a, b.splat(factor, a.type())); };
  const Value h = b.tanh(product(x, 1, w1, 0));
  const Value error = b.subtract(product(h, 1, w2, 0), y);
  const Value loss = times(b.reduce_sum(b.multiply(error, error), {0, 1}), 1.0 / (kBatch * kOut));
  const Value by_out = times(error, 2.0 / (kBatch * kOut));
  const Value by_w2 = product(h, 0, by_out, 0);
  const Value slope = b.subtract(b.splat(1.0, h.type()), b.multiply(h, h));
  const Value by_w1 = product(x, 0, b.multiply(product(by_out, 1, w2, 1), slope), 0);
  const Value m1 = b.add(times(in[2], 0.9), by_w1), m2 = b.add(times(in[3], 0.9), by_w2);
  const Value results[] = {b.subtract(w1, times(m1, 0.5)), b.subtract(w2, times(m2, 0.5)), m1, m2, loss};
  std::vector<Donation> donations(in.size());
  for (size_t i = 0; i < kKept; ++i) donations[i] = {Donation::Kind::kAliasOutput, static_cast<int32_t>(i)};
  return b.finish(results, donations);
}

std::vector<float> first_values(const Type& type, size_t seed) {
  std::vector<float> values(static_cast<size_t>(type.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>((i * 37 + seed * 11) % 23) - 11) / 16.0F;
  if (seed == 2 || seed == 3) std::fill(values.begin(), values.end(), 0.0F);  // the momentum
  return values;
}

// Calls copy(offset in the whole tensor, offset in the block, elements) for each row of a device's block;
// both tensors have two dimensions or none.
template <typename Copy>
void each_row(const Mesh& mesh, const Layout& layout, const Type& type, int64_t device, const Copy& copy) {
  if (type.dims.empty()) return copy(0, 0, 1);
  const Dims size = layout.shard_dims(mesh, type.dims), start = layout.shard_start(mesh, type.dims, device);
  for (int64_t row = 0; row < size[0]; ++row)
    copy((start[0] + row) * type.dims[1] + start[1], row * size[1], size[1]);
}

struct Trained {
  std::vector<std::vector<float>> kept;
  std::vector<float> losses;
  int64_t kept_bytes = 0;     // of weights and momentum on device 0
  int64_t aliased_bytes = 0;  // the program's own figure
};

// Trains for ten steps with these layouts of the weights and the batch.
Trained train(const Mesh& mesh, const std::vector<Layout>& layouts) {
  const auto devices = static_cast<int>(mesh.devices());
  const auto client = pjrt::testing::cpu_client(devices);
  std::vector<Layout> results(layouts.begin(), layouts.begin() + kKept);
  results.emplace_back();
  pjrt::CompileOptions options;
  options.num_partitions = devices;
  options.name = "step";
  for (size_t i = 0; i < layouts.size(); ++i)
    options.argument_types.push_back(f32(layouts[i].shard_dims(mesh, argument_types()[i].dims)));
  options.output_types.assign(options.argument_types.begin(), options.argument_types.begin() + kKept);
  options.output_types.push_back(f32({}));
  const std::string text = training_step();
  const auto step = base::value_or_throw(
      client->compile(devices == 1 ? text : with_layouts(text, {mesh, layouts, results}), options));

  std::vector<std::vector<Buffer>> values(layouts.size());  // [argument][device]
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::vector<float> whole = first_values(argument_types()[i], i);
    for (int d = 0; d < devices; ++d) {
      std::vector<float> block(static_cast<size_t>(options.argument_types[i].numel()));
      each_row(mesh, layouts[i], argument_types()[i], d, [&](int64_t from, int64_t to, int64_t count) {
        std::memcpy(&block[static_cast<size_t>(to)], &whole[static_cast<size_t>(from)],
                    static_cast<size_t>(count) * sizeof(float));
      });
      values[i].push_back(base::value_or_throw(
          client->put(block.data(), options.argument_types[i], *client->devices()[static_cast<size_t>(d)])));
    }
  }
  Trained trained;
  for (int s = 0; s < 10; ++s) {
    std::vector<std::vector<Buffer*>> arguments(static_cast<size_t>(devices));
    for (size_t d = 0; d < arguments.size(); ++d)
      for (auto& argument : values) arguments[d].push_back(&argument[d]);
    std::vector<Buffer> loss, replaced;
    std::vector<std::vector<Buffer>*> outputs;
    for (size_t i = 0; i < kKept; ++i) outputs.push_back(&values[i]);
    outputs.push_back(&loss);
    for (const pjrt::Event& done : base::value_or_throw(step->execute_into(outputs, replaced, arguments)))
      base::value_or_throw(done.await());
    for (const Buffer& each : loss)
      EXPECT_EQ(pjrt::testing::values<float>(each)[0], pjrt::testing::values<float>(loss[0])[0]);
    trained.losses.push_back(pjrt::testing::values<float>(loss[0])[0]);
  }
  for (size_t i = 0; i < kKept; ++i) {
    std::vector<float>& whole = trained.kept.emplace_back(static_cast<size_t>(argument_types()[i].numel()));
    for (int d = 0; d < devices; ++d) {
      const auto block = pjrt::testing::values<float>(values[i][static_cast<size_t>(d)]);
      each_row(mesh, layouts[i], argument_types()[i], d, [&](int64_t to, int64_t from, int64_t count) {
        std::memcpy(&whole[static_cast<size_t>(to)], &block[static_cast<size_t>(from)],
                    static_cast<size_t>(count) * sizeof(float));
      });
    }
    trained.kept_bytes += static_cast<int64_t>(values[i][0].type().bytes());
  }
  trained.aliased_bytes = base::value_or_throw(step->memory()).aliased;
  return trained;
}

const Trained& on_one_device() {
  static const auto* all = new Trained(train(Mesh(), std::vector<Layout>(6, Layout::replicated(2))));
  return *all;
}

class Meshes : public ::testing::TestWithParam<const char*> {};

TEST_P(Meshes, TrainAsOneDevice) {
  const Mesh mesh = Mesh::parse(GetParam());
  const Layout weight({{{"fsdp"}, mesh.size("tensor") > 1 ? 2 : 1}, {{"tensor"}, 1}});
  const Layout w = weight.on(mesh), batch = batch_layout(2).on(mesh);
  const Trained found = train(mesh, {w, w, w, w, batch, batch});
  const Trained& wanted = on_one_device();
  EXPECT_LT(wanted.losses.back(), wanted.losses.front());
  EXPECT_LT(relative_error(found.losses, wanted.losses), 1e-5);
  for (size_t i = 0; i < kKept; ++i) EXPECT_LT(relative_error(found.kept[i], wanted.kept[i]), 1e-5) << i;
  // Two weights and their momentum: 2 × (16 × 32 + 32 × 8) floats.
  const int64_t blocks = mesh.size("fsdp") * mesh.size("tensor");
  EXPECT_EQ(wanted.kept_bytes, 6144);
  EXPECT_EQ(found.kept_bytes, 6144 / blocks);
  EXPECT_EQ(found.aliased_bytes, 6144 / blocks) << "donated";
}

INSTANTIATE_TEST_SUITE_P(All, Meshes,
                         ::testing::Values("fsdp=4", "data=2,fsdp=2", "data=4", "fsdp=2,tensor=2"),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : std::string(info.param)) name += std::isalnum(c) ? c : '_';
                           return name;
                         });

// What a caller expects of the blocks and what the compiler made of the layouts are compared.
TEST(Partitioned, OtherBlocksAreAnError) {
  const auto client = pjrt::testing::cpu_client(4);
  const Mesh mesh({{"fsdp", 4}});
  Builder b;
  const Value x = b.parameter(f32({8}));
  const Value results[] = {b.tanh(x)};
  const std::string text =
      with_layouts(b.finish(results, {}), {mesh, {batch_layout(1).on(mesh)}, {Layout::replicated(1)}});
  pjrt::CompileOptions options;
  options.num_partitions = 4;
  options.argument_types = {f32({2})};
  options.output_types = {f32({2})};
  const auto program = client->compile(text, options);
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().what(),
              HasSubstr("output 0 of program is a tensor<8xf32> on each device: expected tensor<2xf32>"));
  options.num_replicas = 2;
  EXPECT_THAT(client->compile(text, options).error().what(), HasSubstr("one of the numbers must be 1"));
  options.num_replicas = 1;
  options.device_ids = {0, 1};
  EXPECT_THAT(client->compile(text, options).error().what(),
              HasSubstr("for 4 partitions: expected one device for each, found 2"));
}

}  // namespace
}  // namespace sluice::stablehlo
