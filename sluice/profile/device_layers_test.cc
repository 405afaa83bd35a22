// Operations of devices by layer: from XSpaces as the profilers for TPU and CUDA lay them out.
#include "sluice/profile/device_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "sluice/base/formats/proto_writer.h"

namespace sluice::profile {
namespace {

using base::ProtoWriter;
using ::testing::HasSubstr;

// A plane that is written as the profilers do it: names once, numbers for them everywhere else.
class PlaneWriter {
 public:
  explicit PlaneWriter(std::string name) : name_(std::move(name)) {}

  int64_t stat_name(const std::string& name) {
    return stats_.emplace(name, static_cast<int64_t>(stats_.size()) + 1).first->second;
  }
  std::string text(const std::string& name, const std::string& value) {
    return ProtoWriter().number(1, stat_name(name)).bytes(5, value).bytes();
  }
  // A text that is kept among the names.
  std::string reference(const std::string& name, const std::string& value) {
    return ProtoWriter().number(1, stat_name(name)).number(7, stat_name(value)).bytes();
  }
  std::string bytes(const std::string& name, const std::string& value) {
    return ProtoWriter().number(1, stat_name(name)).bytes(6, value).bytes();
  }
  std::string count(const std::string& name, int64_t value) {
    return ProtoWriter().number(1, stat_name(name)).number(3, value).bytes();
  }
  std::string real(const std::string& name, double value) {
    return ProtoWriter().number(1, stat_name(name)).real(2, value).bytes();
  }
  int64_t kind(const std::string& name, const std::vector<std::string>& stats = {}) {
    const auto id = static_cast<int64_t>(++kinds_);
    ProtoWriter made;
    made.number(1, id).bytes(2, name);
    for (const std::string& stat : stats) made.bytes(5, stat);
    metadata_ += ProtoWriter().bytes(4, ProtoWriter().number(1, id).bytes(2, made.bytes()).bytes()).bytes();
    return id;
  }
  // Nanoseconds.
  static std::string event(int64_t kind, int64_t begin, int64_t length,
                           const std::vector<std::string>& stats = {}) {
    ProtoWriter made;
    made.number(1, kind).number(2, begin * 1000).number(3, length * 1000);
    for (const std::string& stat : stats) made.bytes(4, stat);
    return made.bytes();
  }
  void line(const std::string& name, const std::vector<std::string>& events) {
    ProtoWriter made;
    made.number(1, 7).bytes(2, name).number(3, 1);
    for (const std::string& event : events) made.bytes(4, event);
    lines_ += ProtoWriter().bytes(3, made.bytes()).bytes();
  }
  void stat(const std::string& stat) { own_ += ProtoWriter().bytes(6, stat).bytes(); }

  // As a plane of an XSpace.
  std::string done() const {
    std::string plane = ProtoWriter().number(1, 2).bytes(2, name_).bytes() + lines_ + metadata_ + own_;
    for (const auto& [name, id] : stats_)
      plane += ProtoWriter()
                   .bytes(5, ProtoWriter()
                                 .number(1, id)
                                 .bytes(2, ProtoWriter().number(1, id).bytes(2, name).bytes())
                                 .bytes())
                   .bytes();
    return ProtoWriter().bytes(1, plane).bytes();
  }

 private:
  std::string name_, lines_, metadata_, own_;
  std::map<std::string, int64_t> stats_;
  int kinds_ = 0;
};

// Two runs of a step with a loop, and one of a small program, on a TPU. Names, FLOPs and bytes are facts of
// the kind of an event.
std::string tpu_plane(int number) {
  PlaneWriter plane("/device:TPU:" + std::to_string(number));
  plane.stat(plane.real("peak_teraflops_per_second", 100));
  plane.stat(plane.real("peak_hbm_bw_gigabytes_per_second", 1000));
  const int64_t convolution = plane.kind(
      "%fusion.1 = bf16[8] fusion()", {plane.reference("tf_op", "conv1.weight/aten::convolution:Conv2D"),
                                       plane.count("flops", 4'000'000), plane.count("bytes_accessed", 5000)});
  const int64_t gradient = plane.kind(
      "%fusion.2", {plane.reference("tf_op", "conv1.weight/backward"), plane.count("model_flops", 8'000'000),
                    plane.count("flops", 9'000'000), plane.count("bytes_accessed", 300'000)});
  const int64_t loop = plane.kind(
      "%while.3", {plane.reference("tf_op", "lstm.weight_hh/aten::lstm:"), plane.count("flops", 3'000'000)});
  const int64_t inside = plane.kind(
      "%dot.4", {plane.reference("tf_op", "lstm.weight_hh/aten::lstm:"), plane.count("flops", 1'000'000)});
  const int64_t copy = plane.kind("%copy.5");
  const int64_t step = plane.kind("sluice(123)"), small = plane.kind("sluice(124)");
  std::vector<std::string> operations, modules;
  for (const int64_t t : {0, 1000}) {
    modules.push_back(PlaneWriter::event(step, t, 900));
    operations.push_back(PlaneWriter::event(convolution, t, 100));
    operations.push_back(PlaneWriter::event(gradient, t + 100, 300));
    operations.push_back(PlaneWriter::event(loop, t + 400, 400));
    for (int64_t i = 0; i < 3; ++i) operations.push_back(PlaneWriter::event(inside, t + 450 + 100 * i, 100));
    operations.push_back(PlaneWriter::event(copy, t + 800, 50));
  }
  modules.push_back(PlaneWriter::event(small, 2000, 10));
  plane.line("XLA Modules", modules);
  plane.line("Steps", {PlaneWriter::event(plane.kind("9"), 0, 5000)});
  plane.line("XLA Ops", operations);
  return plane.done();
}

const LayerRow* find(const LayerTable& table, const std::string& name, const std::string& pass) {
  for (const LayerRow& row : table.rows)
    if (row.name == name && row.pass == pass) return &row;
  return nullptr;
}

void expect_row(const LayerTable& table, const std::string& name, const std::string& pass, double nanoseconds,
                double calls, double flops, double bytes) {
  const LayerRow* const row = find(table, name, pass);
  ASSERT_NE(row, nullptr) << name << " " << pass;
  EXPECT_DOUBLE_EQ(row->nanoseconds, nanoseconds) << name;
  EXPECT_DOUBLE_EQ(row->calls, calls) << name;
  EXPECT_DOUBLE_EQ(row->flops, flops) << name;
  EXPECT_DOUBLE_EQ(row->bytes, bytes) << name;
}

TEST(DeviceLayers, OfATpuAreOfARunOfItsProgram) {
  const auto table = layers_of_planes(tpu_plane(0) + tpu_plane(1), 3, 12345);
  ASSERT_TRUE(table) << table.error().what();
  EXPECT_EQ(table->unit, "run of its program");
  EXPECT_DOUBLE_EQ(table->step_nanoseconds, 900);
  expect_row(*table, "conv1", "forward", 100, 1, 4e6, 5000);
  expect_row(*table, "conv1", "backward", 300, 1, 8e6, 300'000);
  expect_row(*table, "lstm", "forward", 400, 4, 3e6, 0);
  expect_row(*table, "operations without a name", "", 50, 1, 0, 0);
  EXPECT_FALSE(table->idle_nanoseconds);
  EXPECT_DOUBLE_EQ(table->peaks.flops_per_second, 1e14);
  const auto bound = bound_of(*find(*table, "conv1", "backward"), table->peaks);
  ASSERT_TRUE(bound);
  EXPECT_FALSE(bound->by_compute);
  EXPECT_DOUBLE_EQ(bound->share, 1.0);  // 300 kB in 300 ns, of 1,000 GB/s
  EXPECT_NE(layers_in_words(*table).find("By layer, a run of its program: operations of the device"),
            std::string::npos);
}

// Kernels of a GPU say on their own what they are of, or which instruction of which program they are.
std::string gpu_planes() {
  PlaneWriter plane("/device:GPU:0");
  plane.stat(plane.count("memory_bandwidth", 3'000'000'000'000));
  const int64_t gemm = plane.kind("ampere_sgemm_128x64_tn"), fused = plane.kind("loop_add_fusion"),
                copy = plane.kind("MemcpyH2D");
  const auto program = [&](const std::string& instruction) {
    return std::vector<std::string>{plane.text("hlo_module", "sluice"), plane.text("hlo_op", instruction)};
  };
  std::vector<std::string> named = program("gemm.1");
  named.push_back(plane.text("tf_op", "fc.weight/aten::addmm"));
  plane.line("Stream #13(Compute)", {PlaneWriter::event(gemm, 0, 200, named),
                                     PlaneWriter::event(fused, 300, 100, program("fusion.2")),
                                     PlaneWriter::event(fused, 400, 20, program("fusion.3"))});
  plane.line("Stream #14(MemcpyH2D)", {PlaneWriter::event(copy, 0, 40)});
  const auto instruction = [](const std::string& name, const std::string& op_name) {
    const std::string metadata = ProtoWriter().bytes(1, "add").bytes(2, op_name).bytes();
    return ProtoWriter().bytes(1, name).bytes(2, "fusion").bytes(7, metadata).bytes();
  };
  const std::string computation = ProtoWriter()
                                      .bytes(1, "main")
                                      .bytes(2, instruction("gemm.1", "fc.weight/aten::addmm"))
                                      .bytes(2, instruction("fusion.2", "fc.weight/update/aten::add"))
                                      .bytes();
  const std::string module = ProtoWriter().bytes(1, "sluice").bytes(2, "main").bytes(3, computation).bytes();
  PlaneWriter metadata("/host:metadata");
  metadata.kind("sluice(5)", {metadata.bytes("Hlo Proto", ProtoWriter().bytes(1, module).bytes())});
  return plane.done() + metadata.done();
}

TEST(DeviceLayers, OfAGpuAreOfAStep) {
  const auto table = layers_of_planes(gpu_planes(), 2, 500);
  ASSERT_TRUE(table) << table.error().what();
  EXPECT_EQ(table->unit, "step");
  EXPECT_DOUBLE_EQ(table->step_nanoseconds, 500);
  expect_row(*table, "fc", "forward", 100, 0.5, 0, 0);
  expect_row(*table, "fc", "update", 50, 0.5, 0, 0);
  expect_row(*table, "operations without a name", "", 30, 1, 0, 0);
  EXPECT_FALSE(bound_of(*find(*table, "fc", "forward"), table->peaks)) << "its work is not known";
}

TEST(DeviceLayers, OfALayoutThatIsNotKnownAreNone) {
  PlaneWriter host("/host:CPU"), other("/device:CUSTOM:0");
  other.line("XLA Ops", {PlaneWriter::event(other.kind("x"), 0, 5)});
  const auto unknown = layers_of_planes(host.done() + other.done(), 1, 1);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  EXPECT_THAT(unknown.error().what(), HasSubstr("found the planes /host:CPU, /device:CUSTOM:0"));
  PlaneWriter plain("/device:TPU:0");
  plain.line("XLA Ops", {PlaneWriter::event(plain.kind("%add.1"), 0, 5)});
  EXPECT_THAT(layers_of_planes(plain.done(), 1, 1).error().what(),
              HasSubstr("found 1 operations without a name"));
  EXPECT_THAT(layers_of_planes("", 1, 1).error().what(), HasSubstr("found no plane"));
}

// A plugin's bytes are not trusted.
TEST(DeviceLayers, OfDamagedBytesAreSomeOrNone) {
  const std::string whole = tpu_plane(0) + gpu_planes();
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = whole.substr(0, random() % 4 == 0 ? random() % whole.size() : whole.size());
    for (int change = 0; change < 4 && !bytes.empty(); ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto table = layers_of_planes(bytes, 1, 1);
    EXPECT_FALSE(table ? layers_as_json(*table).empty() : std::string(table.error().what()).empty());
  }
}

}  // namespace
}  // namespace sluice::profile
