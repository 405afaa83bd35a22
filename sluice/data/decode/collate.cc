#include "sluice/data/decode/collate.h"

#include <algorithm>
#include <cstring>

#include "sluice/data/decode/planes.h"

namespace sluice::data {
namespace {

BatchLayout::Item item_of(const Value& value) {
  BatchLayout::Item item;
  if (std::holds_alternative<std::string>(value)) {
    item.text = true;
  } else if (std::holds_alternative<std::int64_t>(value)) {
    item.type = ElementType::kInt64;
  } else if (std::holds_alternative<double>(value)) {
    item.type = ElementType::kFloat64;
  } else if (const auto* array = std::get_if<Array>(&value)) {
    item.type = array->type();
    item.shape = array->shape();
  } else if (const auto* image = std::get_if<Image>(&value)) {
    const auto& shape = image->pixels.shape();
    item.image = true;
    item.type = image->pixels.type();
    if (shape.size() == 3) item.shape = {shape[2], shape[0], shape[1]};
  }
  return item;
}

bool same(const BatchLayout::Item& a, const BatchLayout::Item& b) {
  return a.text == b.text && a.image == b.image && a.type == b.type && a.shape == b.shape;
}

// Returns whether item_of(value) would be `item`.
bool fits(const Value& value, const BatchLayout::Item& item) {
  const auto* image = std::get_if<Image>(&value);
  if (image == nullptr || image->pixels.shape().size() != 3) return same(item_of(value), item);
  const auto& shape = image->pixels.shape();
  return item.image && item.type == image->pixels.type() && item.shape.size() == 3 &&
         item.shape[0] == shape[2] && item.shape[1] == shape[0] && item.shape[2] == shape[1];
}

std::string describe(const BatchLayout::Item& item) {
  if (item.text) return "text";
  return base::str(item.image ? "image " : "", name_of(item.type), " [", base::join(item.shape, ", "), "]");
}

void put(const Value& value, const BatchLayout::Item& item, std::uint8_t* row, std::size_t row_bytes) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    std::memcpy(row, number, sizeof *number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    std::memcpy(row, real, sizeof *real);
  } else if (const auto* array = std::get_if<Array>(&value)) {
    if (row_bytes > 0) std::memcpy(row, array->data<std::uint8_t>(), row_bytes);
  } else if (const auto* image = std::get_if<Image>(&value)) {
    const std::int64_t area = item.shape[1] * item.shape[2];
    if (item.type == ElementType::kFloat32) {
      split_planes(image->pixels.data<float>(), area, item.shape[0], reinterpret_cast<float*>(row));
    } else {
      split_planes(image->pixels.data<std::uint8_t>(), area, item.shape[0], row);
    }
  }
}

using Rows = std::vector<std::optional<Sample>>;

Array array_of(std::size_t rows, const BatchLayout::Item& item) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows)};
  shape.insert(shape.end(), item.shape.begin(), item.shape.end());
  return Array(item.type, std::move(shape));
}

bool released(const Value& value) {
  const auto* image = std::get_if<Image>(&value);
  return image != nullptr && !image->pixels.defined();
}

Column stack(Rows& rows, std::size_t field, const BatchLayout::Item& item, const ImageColumns& images) {
  Column column;
  if (item.text) {
    column.text.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i]) column.text[i] = std::move(std::get<std::string>(rows[i]->fields[field]));
    return column;
  }
  column.array = images.column(field, item);
  if (!column.array.defined()) column.array = array_of(rows.size(), item);
  const std::size_t row_bytes = rows.empty() ? 0 : column.array.bytes() / rows.size();
  auto* memory = column.array.data<std::uint8_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] && released(rows[i]->fields[field])) continue;
    if (rows[i])
      put(rows[i]->fields[field], item, memory + i * row_bytes, row_bytes);
    else
      std::memset(memory + i * row_bytes, 0, row_bytes);
  }
  return column;
}

base::Status check_layout(const Sample& sample, const BatchLayout& layout) {
  if (sample.fields.size() != layout.columns.size())
    return base::fail(Code::kInvalidArgument, sample.shard, ": sample ", sample.key, " has ",
                      sample.fields.size(), " fields, others have ", layout.columns.size(),
                      ": expected the same number in each");
  for (std::size_t i = 0; i < sample.fields.size(); ++i) {
    if (std::holds_alternative<Arrays>(sample.fields[i]))
      return base::fail(Code::kInvalidArgument, sample.shard, ": sample ", sample.key,
                        " has the arrays of an npz file as field ", i, ": take one of them in map()");
    if (fits(sample.fields[i], layout.columns[i])) continue;
    return base::fail(
        Code::kInvalidArgument, sample.shard, ": sample ", sample.key, " has ",
        describe(item_of(sample.fields[i])), " as field ", i, ", others have ", describe(layout.columns[i]),
        ": samples of a batch must be alike; --resize with --crop makes images so (in C++ resize(), crop())");
  }
  return {};
}

}  // namespace

BatchLayout layout_of(const Sample& sample) {
  BatchLayout layout;
  for (const Value& value : sample.fields) layout.columns.push_back(item_of(value));
  return layout;
}

void ImageColumns::take(Sample& sample, std::size_t row, std::size_t rows) {
  std::call_once(begun_, [&] {
    layout_ = layout_of(sample);
    columns_.resize(layout_.columns.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const BatchLayout::Item& item = layout_.columns[i];
      if (item.image && item.shape.size() == 3) columns_[i] = array_of(rows, item);
    }
  });
  for (std::size_t i = 0; i < std::min(columns_.size(), sample.fields.size()); ++i) {
    auto* image = std::get_if<Image>(&sample.fields[i]);
    if (image == nullptr || !columns_[i].defined() || !fits(sample.fields[i], layout_.columns[i])) continue;
    const std::size_t row_bytes = columns_[i].bytes() / rows;
    put(sample.fields[i], layout_.columns[i], columns_[i].data<std::uint8_t>() + row * row_bytes, row_bytes);
    image->pixels.release();
  }
}

Array ImageColumns::column(std::size_t field, const BatchLayout::Item& item) const {
  const bool has = field < columns_.size() && same(layout_.columns[field], item);
  return has ? columns_[field] : Array();
}

base::Result<Batch> collate(Rows rows, const BatchLayout& layout, const ImageColumns& images) {
  Batch batch;
  batch.mask = Array(ElementType::kBool, {static_cast<std::int64_t>(rows.size())});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    batch.mask.data<bool>()[i] = rows[i].has_value();
    if (!rows[i]) continue;
    SLUICE_OK(check_layout(*rows[i], layout));
    ++batch.count;
    batch.keys.push_back(std::move(rows[i]->key));
  }
  for (std::size_t i = 0; i < layout.columns.size(); ++i)
    batch.columns.push_back(stack(rows, i, layout.columns[i], images));
  const Array* first_array = nullptr;
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    const auto& item = layout.columns[i];
    const Array& array = batch.columns[i].array;
    if (item.image && !batch.image.defined()) batch.image = array;
    if (!item.text && !item.shape.empty() && first_array == nullptr) first_array = &array;
    const bool number = !item.text && item.shape.empty() && item.type == ElementType::kInt64;
    if (number && !batch.label.defined()) batch.label = array;
  }
  if (!batch.image.defined() && first_array != nullptr) batch.image = *first_array;
  return batch;
}

}  // namespace sluice::data
