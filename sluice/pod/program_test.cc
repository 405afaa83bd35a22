#include "sluice/pod/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/pod/supervisor.h"
#include "sluice/pod/test_shell.h"

namespace sluice::pod {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ProgramArchive : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string made = sh_output("cd " + folder_.path() +
                                       " && mkdir -p top/bin top/a && echo \"echo hello\" >top/bin/it && "
                                       "head -c 100000 /dev/urandom >top/a/b"
                                       " && tar -cf - top | zstd -q >one.tar.zst");
    ASSERT_THAT(made, Not(HasSubstr("failed")));
  }
  std::string path(const char* name = "one.tar.zst") const { return folder_.path(name); }
  std::string sum_by_tool(const std::string& command) const {
    return sh_output("cd " + folder_.path() + " && " + command + " | sha256sum").substr(0, 64);
  }
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

TEST_F(ProgramArchive, IsReadToItsEnd) {
  const auto program = check_program(path());
  ASSERT_TRUE(program) << program.error().what();
  EXPECT_EQ(program->sha256, sum_by_tool("cat one.tar.zst"));
  EXPECT_EQ(program->bytes, *base::file_size(path()));
  EXPECT_EQ(program->tar_sha256, sum_by_tool("zstd -dc one.tar.zst"));
  ASSERT_TRUE(unpack_program(*program, path("one.tar")));
  EXPECT_EQ(sum_by_tool("cat one.tar"), program->tar_sha256);
  EXPECT_EQ(*base::file_size(path("one.tar")), program->tar_bytes);
}

TEST_F(ProgramArchive, DamageIsFound) {
  const std::string good = *base::read_file(path());
  const auto error_of = [&](const std::string& bytes) -> std::string {
    base::value_or_throw(base::write_file_atomically(path("bad"), bytes));
    const auto program = check_program(path("bad"));
    return program ? "none" : program.error().what();
  };
  EXPECT_EQ(error_of(good), "none");
  for (const size_t size : {good.size() - 1, good.size() / 2, size_t{5}})
    EXPECT_THAT(error_of(good.substr(0, size)), HasSubstr("it ends in the middle")) << size;
  EXPECT_THAT(error_of(""), HasSubstr("it ends in the middle"));
  EXPECT_THAT(error_of("no archive"), HasSubstr("not packed with zstd"));
  std::string changed = good;
  changed[changed.size() / 2] ^= 1;
  EXPECT_THAT(error_of(changed), HasSubstr("bad is damaged: "));
  // Another archive than the one whose checksum is beside it.
  sh_output("cd " + folder_.path() + " && zstd -dc one.tar.zst | zstd -q -1 --no-check >two.tar.zst");
  base::value_or_throw(
      base::write_file_atomically(path("bad.sha256"), sum_by_tool("cat one.tar.zst") + "  one.tar.zst\n"));
  EXPECT_EQ(error_of(good), "none");
  EXPECT_THAT(error_of(*base::read_file(path("two.tar.zst"))), HasSubstr("bad.sha256 is about"));
}

TEST_F(ProgramArchive, IsOfOneFolderWithBin) {
  EXPECT_THAT(check_program(folder_.path()).error().what(), HasSubstr("is a folder"));
  EXPECT_EQ(check_program(path("none")).error().code(), Code::kNotFound);
  sh_output("cd " + folder_.path() + " && tar -cf - top/a | zstd -q >no_bin && echo x | zstd -q >no_tar");
  EXPECT_THAT(check_program(path("no_bin")).error().what(), HasSubstr("has no FOLDER/bin"));
  EXPECT_THAT(check_program(path("no_tar")).error().what(), HasSubstr("holds no tar archive"));
}

TEST(ProgramPath, ComesFirst) {
  const std::string script = worker_script({{"PATH", "/x:/usr/bin:/bin"}, {"XDG_CACHE_HOME", "/other"}}, "/",
                                           {"sh", "-c", "echo $PATH"}, "0123");
  EXPECT_EQ(sh_output("cd $(mktemp -d) && export HOME=/h && unset XDG_CACHE_HOME\n" + script),
            "/h/.cache/sluice/programs/0123/bin:/x:/usr/bin:/bin\n");
}

}  // namespace
}  // namespace sluice::pod
