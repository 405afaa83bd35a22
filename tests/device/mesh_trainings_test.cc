// Fifty steps of AdamW over meshes of eight virtual devices equal fifty steps on one device: losses, weights,
// statistics and moments.
#include "tests/common/mesh_trainings.h"

#include "tests/device/mesh_support.h"

namespace sluice::tests {
namespace {

MeshTrained trained_on(const char* mesh, const std::string& name) {
  DeviceOptions options;
  options.cpu_kernels = false;  // as over a mesh
  open_mesh(mesh, options);
  return train_on_mesh(name);
}

class MeshTrainings : public MeshTest, public testing::WithParamInterface<const char*> {};

TEST_P(MeshTrainings, EqualOneDevice) {
  const MeshTrained one = trained_on("fsdp=1", GetParam());
  const double largest = max_error_on_mesh(GetParam());
  EXPECT_NE(one.losses.back(), one.losses.front());
  for (const char* mesh : {"fsdp=8", "fsdp=4,tensor=2", "data=2,fsdp=2,tensor=2"}) {
    SCOPED_TRACE(mesh);
    const MeshTrained run = trained_on(mesh, GetParam());
    EXPECT_LT(error_on_mesh("losses", torch::tensor(run.losses, torch::kDouble),
                            torch::tensor(one.losses, torch::kDouble)),
              largest);
    ASSERT_EQ(run.values.size(), one.values.size());
    for (const auto& [name, value] : one.values)
      EXPECT_LT(error_on_mesh(name, run.values.at(name), value), largest) << name;
    EXPECT_GE(run.in_blocks, 3);
    EXPECT_EQ(run.late_programs, 0) << "programs after the tenth step";
  }
}

INSTANTIATE_TEST_SUITE_P(All, MeshTrainings, testing::ValuesIn(kMeshTrainings),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::tests
