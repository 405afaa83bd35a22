#include "sluice/kernels/onednn.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "sluice/base/check.h"
#include "sluice/kernels/arena.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

constexpr const char* kLibrary = "libdnnl.so.2";

base::Result<const Onednn*> open_once() {
  // Opened for the life of the process, with its symbols hidden from LibTorch.
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return base::fail(Code::kNotFound, "oneDNN is not there (Debian's package libdnnl2): ", ::dlerror());
  }
  static Onednn one{};
#define SLUICE_FIND(name)                                                           \
  one.name = reinterpret_cast<decltype(one.name)>(::dlsym(library, "dnnl_" #name)); \
  if (one.name == nullptr) return base::fail(Code::kUnimplemented, kLibrary, " has no function dnnl_" #name);
  SLUICE_ONEDNN_FUNCTIONS(SLUICE_FIND)
#undef SLUICE_FIND
  const dnnl_version_t* version = one.version();
  if (version->major != DNNL_VERSION_MAJOR || version->minor != DNNL_VERSION_MINOR) {
    return base::fail(Code::kUnimplemented, "expected oneDNN ", DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR,
                      ", for which this program was built, found ", version->major, ".", version->minor);
  }
  if (one.engine_create(&one.engine, dnnl_cpu, 0) != dnnl_success ||
      one.stream_create(&one.stream, one.engine, dnnl_stream_default_flags) != dnnl_success) {
    return base::fail(Code::kInternal, "oneDNN gives no engine for this CPU");
  }
  return &one;
}

const Onednn& onednn() { return *base::value_or_throw(Onednn::open()); }

bool is_fast(std::string_view implementation) {
  return implementation.substr(0, 3) == "jit" || implementation.substr(0, 3) == "brg";
}

// A memory object for the duration of a call.
class Memory {
 public:
  explicit Memory(const Argument& argument) {
    SLUICE_CHECK(onednn().memory_create(&memory_, argument.layout, onednn().engine, argument.data) ==
                 dnnl_success);
  }
  ~Memory() { onednn().memory_destroy(memory_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  dnnl_memory_t get() const { return memory_; }

 private:
  dnnl_memory_t memory_ = nullptr;
};

// Scratch memory comes from the caller, so that one primitive can run on several threads.
class Attributes {
 public:
  explicit Attributes(bool added = false) {
    const Onednn& library = onednn();
    SLUICE_CHECK(library.primitive_attr_create(&attributes_) == dnnl_success);
    SLUICE_CHECK(library.primitive_attr_set_scratchpad_mode(attributes_, dnnl_scratchpad_mode_user) ==
                 dnnl_success);
    if (!added) return;
    dnnl_post_ops_t operations = nullptr;
    SLUICE_CHECK(library.post_ops_create(&operations) == dnnl_success);
    SLUICE_CHECK(library.post_ops_append_sum(operations, 1) == dnnl_success);
    SLUICE_CHECK(library.primitive_attr_set_post_ops(attributes_, operations) == dnnl_success);
    library.post_ops_destroy(operations);
  }
  ~Attributes() { onednn().primitive_attr_destroy(attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const_dnnl_primitive_attr_t get() const { return attributes_; }

 private:
  dnnl_primitive_attr_t attributes_ = nullptr;
};

}  // namespace

base::Result<const Onednn*> Onednn::open() {
  static const base::Result<const Onednn*> opened = open_once();
  return opened;
}

std::unique_ptr<Primitive> Primitive::create(const_dnnl_op_desc_t description, const Primitive* forward,
                                             bool added) {
  const Attributes attributes(added);
  dnnl_primitive_desc_t made = nullptr;
  const auto status = onednn().primitive_desc_create(&made, description, attributes.get(), onednn().engine,
                                                     forward == nullptr ? nullptr : forward->description_);
  if (status != dnnl_success) return nullptr;
  auto primitive = finish(made);
  return primitive && is_fast(primitive->implementation_) ? std::move(primitive) : nullptr;
}

std::unique_ptr<Primitive> Primitive::product(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b,
                                              const dnnl_memory_desc_t& c, bool added) {
  dnnl_matmul_desc_t description;
  if (onednn().matmul_desc_init(&description, &a, &b, nullptr, &c) != dnnl_success) return nullptr;
  return create(&description, nullptr, added);
}

std::unique_ptr<Primitive> Primitive::reorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to) {
  const Attributes attributes;
  dnnl_primitive_desc_t made = nullptr;
  const auto status = onednn().reorder_primitive_desc_create(&made, &from, onednn().engine, &to,
                                                             onednn().engine, attributes.get());
  return status == dnnl_success ? finish(made) : nullptr;
}

std::unique_ptr<Primitive> Primitive::finish(dnnl_primitive_desc_t description) {
  std::unique_ptr<Primitive> primitive(new Primitive);
  primitive->description_ = description;
  const char* name = nullptr;
  onednn().primitive_desc_query(description, dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
  primitive->implementation_ = name == nullptr ? "" : name;
  if (onednn().primitive_create(&primitive->primitive_, description) != dnnl_success) return nullptr;
  primitive->scratch_bytes_ = layout_bytes(primitive->layout(dnnl_query_scratchpad_md));
  return primitive;
}

Primitive::~Primitive() {
  if (primitive_ != nullptr) onednn().primitive_destroy(primitive_);
  onednn().primitive_desc_destroy(description_);
}

const dnnl_memory_desc_t& Primitive::layout(dnnl_query_t what) const {
  const dnnl_memory_desc_t* found = onednn().primitive_desc_query_md(description_, what, 0);
  SLUICE_CHECK(found != nullptr, implementation_, " has no such argument");
  return *found;
}

base::Status Primitive::execute(std::span<const Argument> arguments) const {
  const Scratch scratch(scratch_bytes_);
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<dnnl_exec_arg_t> passed;
  const auto pass = [&](const Argument& argument) {
    memories.push_back(std::make_unique<Memory>(argument));
    passed.push_back({argument.number, memories.back()->get()});
  };
  for (const Argument& argument : arguments) pass(argument);
  if (scratch_bytes_ > 0) pass({DNNL_ARG_SCRATCHPAD, &layout(dnnl_query_scratchpad_md), scratch.data()});
  const auto status =
      onednn().primitive_execute(primitive_, onednn().stream, static_cast<int>(passed.size()), passed.data());
  if (status == dnnl_success) return {};
  return base::fail(Code::kInternal, "oneDNN's ", implementation_, " failed with status ",
                    static_cast<int>(status));
}

// ---- Reorder ----

namespace {

// Returns the number of elements of the dimension that the layout keeps together.
int64_t block_of(const dnnl_memory_desc_t& layout, int dimension) {
  const dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
  int64_t block = 1;
  for (int i = 0; i < blocks.inner_nblks; ++i)
    if (blocks.inner_idxs[i] == dimension) block *= blocks.inner_blks[i];
  return block;
}

// Returns the dimension whose blocks are farthest apart.
int slowest_of(const dnnl_memory_desc_t& layout) {
  const auto& strides = layout.format_desc.blocking.strides;
  return static_cast<int>(std::max_element(strides, strides + layout.ndims) - strides);
}

}  // namespace

Reorder::Part Reorder::make_part(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, int dimension,
                                 int64_t extent) {
  dnnl_dims_t dims, offsets{};
  std::copy_n(from.dims, from.ndims, dims);
  dims[dimension] = extent;
  Part part{};
  const auto cut = [&](const dnnl_memory_desc_t& whole, dnnl_memory_desc_t& piece) {
    return onednn().memory_desc_init_submemory(&piece, &whole, dims, offsets) == dnnl_success;
  };
  if (cut(from, part.from) && cut(to, part.to)) part.primitive = Primitive::reorder(part.from, part.to);
  return part;
}

std::unique_ptr<Reorder> Reorder::make(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to) {
  auto made = std::make_unique<Reorder>();
  // The layout with blocks, of the two, decides which elements stay together.
  const int dimension = slowest_of(to.format_desc.blocking.inner_nblks > 0 ? to : from);
  const int64_t whole = from.dims[dimension],
                block = std::max(block_of(from, dimension), block_of(to, dimension));
  int64_t extent = whole;
  if (whole % block == 0) {
    const int64_t parts = std::min<int64_t>(whole / block, kMaxPartsPerThread * threads_of_a_call());
    extent = (whole / block + parts - 1) / parts * block;
  }
  made->parts_ = static_cast<size_t>((whole + extent - 1) / extent);
  made->full_ = make_part(from, to, dimension, extent);
  made->last_ = make_part(from, to, dimension, whole - static_cast<int64_t>(made->parts_ - 1) * extent);
  if (!made->full_.primitive || !made->last_.primitive) return nullptr;
  std::vector<int64_t> second(static_cast<size_t>(from.ndims));
  if (made->parts_ > 1) second[static_cast<size_t>(dimension)] = extent;
  made->from_step_ = offset_in(from, second);
  made->to_step_ = offset_in(to, second);
  return made;
}

base::Status Reorder::run(void* from, void* to) const {
  return parallel_for_status(parts_, [&](size_t i) {
    const Part& part = i + 1 < parts_ ? full_ : last_;
    return part.primitive->execute(
        std::array<Argument, 2>{{{DNNL_ARG_FROM, &part.from, static_cast<float*>(from) + i * from_step_},
                                 {DNNL_ARG_TO, &part.to, static_cast<float*>(to) + i * to_step_}}});
  });
}

// ---- Layouts ----

dnnl_memory_desc_t dense(std::span<const int64_t> dims, std::span<const int> order) {
  dnnl_dims_t strides;
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= std::max<int64_t>(1, dims[static_cast<size_t>(order[i])]);
  }
  dnnl_memory_desc_t layout;
  SLUICE_CHECK(onednn().memory_desc_init_by_strides(&layout, static_cast<int>(dims.size()), dims.data(),
                                                    dnnl_f32, strides) == dnnl_success);
  return layout;
}

dnnl_memory_desc_t in_panels(const std::array<int64_t, 3>& dims, int64_t block) {
  constexpr int kColumns = 2;
  dnnl_memory_desc_t layout = dense(dims, std::array<int, 3>{0, kColumns, 1});
  const int64_t filled = (dims[kColumns] + block - 1) / block * block;
  layout.padded_dims[kColumns] = filled;
  dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
  blocks.inner_nblks = 1;
  blocks.inner_blks[0] = block;
  blocks.inner_idxs[0] = kColumns;
  const std::array<int64_t, 3> strides = {dims[1] * filled, block, dims[1] * block};
  std::copy(strides.begin(), strides.end(), blocks.strides);
  return layout;
}

dnnl_memory_desc_t any_layout(std::span<const int64_t> dims) {
  dnnl_memory_desc_t layout;
  SLUICE_CHECK(onednn().memory_desc_init_by_tag(&layout, static_cast<int>(dims.size()), dims.data(), dnnl_f32,
                                                dnnl_format_tag_any) == dnnl_success);
  return layout;
}

bool same_layout(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b) {
  return onednn().memory_desc_equal(&a, &b) != 0;
}
size_t layout_bytes(const dnnl_memory_desc_t& layout) { return onednn().memory_desc_get_size(&layout); }

size_t offset_in(const dnnl_memory_desc_t& layout, std::vector<int64_t> index) {
  const dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
  int64_t place = 0, step = 1;
  for (int i = blocks.inner_nblks; i-- > 0;) {
    int64_t& at = index[static_cast<size_t>(blocks.inner_idxs[i])];
    place += at % blocks.inner_blks[i] * step;
    at /= blocks.inner_blks[i];
    step *= blocks.inner_blks[i];
  }
  for (size_t d = 0; d < index.size(); ++d) place += index[d] * blocks.strides[d];
  return static_cast<size_t>(place);
}

}  // namespace sluice::kernels
