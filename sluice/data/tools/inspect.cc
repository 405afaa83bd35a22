#include "sluice/data/tools/inspect.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_facts.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/tools/duplicates.h"

namespace sluice::data {
namespace {

// The checks of one shard.
class ShardCheck {
  static constexpr std::size_t kManyFields = 1000;

 public:
  // `prints`: receives the samples' contents, to find duplicates; or null.
  ShardCheck(const std::string& url, const VerifyOptions& options, FolderSizes& sizes, VerifyReport& report,
             std::vector<SamplePrint>* prints)
      : url_(url),
        shard_(std::make_shared<const std::string>(base::shown_urls(url))),
        options_(options),
        sizes_(sizes),
        report_(report),
        prints_(prints) {
    for (const std::string& field : options.fields)
      expected_.push_back({base::split(field, ';'), FieldKind::kAny});
  }

  void run() {
    ++report_.shards;
    auto status = read();
    if (status) status = compare_sum();
    if (!status) add(status.error().what());
    end_sample();
    if (const auto fits = compare_counts(); !fits) add(fits.error().what());
    if (report_.samples == 0 && status)
      add(url_ + ": no samples: expected members such as 0001.jpg and 0001.cls");
  }

 private:
  void add(const std::string& what, bool fatal = true) { report_.problems.push_back({url_, what, fatal}); }
  std::string at(const Member& member) const {
    return base::str(url_, ": member ", member.name, " (header at byte ", member.offset, ")");
  }

  // Compares the bytes with the sum in sizes.json: no other check sees damage within an image's data.
  base::Status compare_sum() {
    std::optional<ShardRecord> record;
    if (can_be_read_again(url_)) {
      SLUICE_TRY(record, sizes_.find(url_));
    }
    const bool known = record && record->sum;
    report_.unsummed += known ? 0 : 1;
    if (!known || *record->sum == sum_) return {};
    return base::fail(Code::kDataLoss, url_, " has ", sum_.text(), ": sizes.json next to it says ",
                      record->sum->text(),
                      ". A byte of it was changed, or it was replaced, after its index was made");
  }

  // Compares the samples with the number that readers use: from the index file, or else sizes.json. An
  // archive that ends in zeros too early looks whole, and readers pass over a sample that the index lacks.
  base::Status compare_counts() {
    if (!can_be_read_again(url_)) return {};
    SLUICE_TRY(const auto index, read_index(url_));
    if (index) return compare_index(*index);
    SLUICE_TRY(const auto record, sizes_.find(url_));
    if (!record || record->samples == report_.samples) return {};
    return base::fail(Code::kDataLoss, url_, " has ", base::counted(report_.samples, "sample"),
                      ": sizes.json next to it says ", record->samples);
  }
  base::Status compare_index(const ShardIndex& index) const {
    const std::string path = index_path(url_);
    if (index.samples.size() != starts_.size())
      return base::fail(Code::kDataLoss, url_, " has ",
                        base::counted(static_cast<std::int64_t>(starts_.size()), "sample"), ": ", path,
                        " has ", index.samples.size(),
                        ". If the shard is right, make the index again with 'sluice data index'");
    for (std::size_t i = 0; i < starts_.size(); ++i)
      if (index.samples[i].front().offset != starts_[i])
        return base::fail(Code::kDataLoss, path, ": sample ", i, " begins at byte ",
                          index.samples[i].front().offset, ", and in the shard at byte ", starts_[i],
                          ": make the index again with 'sluice data index'");
    return {};
  }

  base::Status read() {
    SourceOptions options;
    options.sum = &sum_;
    SLUICE_TRY(auto source, open_source(url_, options));
    TarReader tar(std::move(source));
    Member member;
    std::string payload;
    while (true) {
      SLUICE_TRY(const bool found, tar.next(member));
      report_.bytes = tar.offset();
      if (!found) return {};
      if (!belongs(member)) continue;
      payload_begins_ = tar.offset();
      const auto status = tar.read_payload(payload);
      if (!status && status.error().code() != Code::kResourceExhausted) return status;
      ++report_.members;
      if (!status) add(status.error().what());
      check_member(member, payload, status.has_value());
    }
  }

  bool belongs(const Member& member) {
    if (member.kind == MemberKind::kFolder) return false;
    if (member.kind != MemberKind::kFile) {
      add(at(member) + " is a link or a special file: readers leave it out; pack it again with its contents");
      return false;
    }
    if (split_name(member.name)) return true;
    if (is_apple_double(member.name)) {
      if (apple_doubles_++ == 0)
        add(at(member) +
                " is an AppleDouble file of macOS: readers leave such members out, and so are the others "
                "here",
            false);
      return false;
    }
    if (!base::starts_with(member.name, "__"))
      add(at(member) + " has no key or no extension: readers leave it out", false);
    return false;
  }

  // `readable`: the payload is there.
  void check_member(const Member& member, const std::string& payload, bool readable) {
    const SplitName name = *split_name(member.name);
    if (name.key != sample_.key || sample_.fields.empty()) {
      end_sample();
      sample_.key = name.key;
      sample_.shard = shard_;
      starts_.push_back(payload_begins_);
      if (!keys_.insert(sample_.key).second)
        add(at(member) + " continues a sample that ended before: members of a sample must follow each other");
    }
    Field field;
    field.extension = base::lower_case(name.extension);
    field.member = member.name;
    field.offset = member.offset;
    if (extensions_.add(sample_, field.extension) != nullptr)
      add(at(member) + " has the same key and extension as an earlier member of its sample");
    if (prints_ != nullptr) note(field, payload);
    if (readable) decode(field, payload, member);
    sample_.fields.push_back(std::move(field));
  }

  // Adds a member to the sample's print. Class numbers do not make samples differ.
  void note(const Field& field, const std::string& payload) {
    if (format_of(field.extension) == Format::kNumber) {
      print_.label += base::str(print_.label.empty() ? "" : ", ", base::trim(payload));
    } else {
      const Digest digest = digest_of(payload);
      contents_.append(digest.begin(), digest.end());
    }
  }

  // Decodes one member by itself, with the readers' own decoder.
  void decode(const Field& field, const std::string& payload, const Member& member) {
    const Format format = format_of(field.extension);
    if (format == Format::kBytes || format == Format::kPython) return;
    RawSample raw;
    raw.key = sample_.key;
    raw.shard = shard_;
    raw.fields.push_back(field);
    raw.fields.back().bytes = payload;
    raw.fields.back().offset = member.offset;
    DecodePlan plan;
    plan.spec = ImageSpec{};
    plan.classes = options_.classes;
    plan.fields.push_back({{field.extension}, FieldKind::kAny});
    const auto decoded = decode_sample(raw, plan);
    if (!decoded) add(decoded.error().what());
    if (decoded && prints_ != nullptr && options_.likeness && !print_.likeness)
      if (const auto* image = std::get_if<Image>(&decoded->fields.front())) look_at(image->pixels);
  }

  void look_at(const Array& pixels) {
    const auto* bytes = pixels.data<std::uint8_t>();
    print_.likeness = likeness_of(
        {pixels.shape()[0], pixels.shape()[1], pixels.shape()[2], {bytes, bytes + pixels.bytes()}});
  }

  // Notes samples that were merged. Keys end at their first dot: 22.txt, 22.cls, 22.5.txt and 22.5.cls are
  // four members of one sample. A set of frames (0.png, 1.png) has one member for each number and does not
  // count.
  void note_merged_samples() {
    std::map<std::string, std::set<std::string>> members;  // by the number that precedes them
    for (const Field& field : sample_.fields) {
      const std::size_t dot = field.extension.find('.');
      const bool numbered =
          dot != std::string::npos && std::isdigit(static_cast<unsigned char>(field.extension[0])) != 0;
      members[numbered ? field.extension.substr(0, dot) : ""].insert(
          numbered ? field.extension.substr(dot + 1) : field.extension);
    }
    for (auto one = members.begin(); one != members.end(); ++one)
      for (auto other = std::next(one); other != members.end(); ++other)
        if (one->second.size() > 1 && one->second == other->second && merged_++ == 0)
          add(base::str(sample_.where(), " has each of its members again as ", other->first, ".",
                        *other->second.begin(), " and so on: if these are a sample of their own, rename ",
                        "the files so that keys have no dots (a key ends at the first one)"),
              false);
  }

  void end_sample() {
    if (sample_.fields.empty()) return;
    ++report_.samples;
    note_merged_samples();
    if (expected_.empty())
      for (const Field& field : sample_.fields) expected_.push_back({{field.extension}, FieldKind::kAny});
    if (expected_.size() > kManyFields) expected_.clear();  // no set has this number of different members
    for (const FieldPlan& plan : expected_) {
      const bool present =
          std::any_of(plan.extensions.begin(), plan.extensions.end(),
                      [&](const std::string& extension) { return sample_.find(extension) != nullptr; });
      if (!present)
        add(base::str(sample_.where(), " has no member ", base::join(plan.extensions, " or "),
                      options_.fields.empty() ? ", which the shard's first one has" : ""));
    }
    if (prints_ != nullptr) {
      print_.place = sample_.where();
      print_.contents = digest_of(contents_);
      prints_->push_back(std::move(print_));
    }
    print_ = SamplePrint{};
    contents_.clear();
    extensions_.clear();
    sample_ = RawSample{};
  }

  const std::string& url_;
  const std::shared_ptr<const std::string> shard_;  // the same, in the form that samples hold
  const VerifyOptions& options_;
  FolderSizes& sizes_;
  VerifyReport& report_;
  ShardSum sum_;
  std::vector<FieldPlan> expected_;
  std::set<std::string> keys_;
  RawSample sample_;
  ExtensionSet extensions_;            // of this sample
  std::vector<std::uint64_t> starts_;  // offset of the first payload of each sample
  std::uint64_t payload_begins_ = 0;   // offset of the payload that is being read
  std::vector<SamplePrint>* prints_;
  SamplePrint print_;     // of this sample
  std::string contents_;  // digests of this sample's members
  std::int64_t apple_doubles_ = 0, merged_ = 0;
};

void report_duplicates(const VerifyOptions& options, std::vector<std::vector<SamplePrint>> shards,
                       VerifyReport& report) {
  std::vector<SamplePrint> prints;
  std::vector<std::size_t> shard_of;
  std::size_t samples = 0;
  for (const auto& shard : shards) samples += shard.size();
  prints.reserve(samples);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (SamplePrint& print : shards[i]) {
      print.set = options.sets.empty() ? 0 : options.sets[i];
      prints.push_back(std::move(print));
      shard_of.push_back(i);
    }
    shards[i] = {};  // each sample is held once
  }
  for (const Duplicate& duplicate : find_duplicates(prints, options.likeness)) {
    const SamplePrint& sample = prints[duplicate.sample];
    const SamplePrint& of = prints[duplicate.of];
    const bool leak = sample.set != of.set;
    ++(leak ? report.leaks : report.duplicates);
    std::string what =
        base::str(sample.place, duplicate.different_bits < 0 ? " has the same contents as " : " looks like ",
                  of.place, leak ? ", of another set" : "");
    if (sample.label != of.label)
      what += base::str("; its class is ", sample.label, ", the other's ", of.label);
    report.problems.push_back({options.urls[shard_of[duplicate.sample]], std::move(what), leak});
  }
}

}  // namespace

std::int64_t VerifyReport::failures() const {
  return std::count_if(problems.begin(), problems.end(),
                       [](const Problem& problem) { return problem.fatal; });
}

base::Result<ShardListing> list_shard(const std::string& url, bool with_keys) {
  ShardListing listing;
  listing.url = url;
  SLUICE_TRY(auto source, open_source(url));
  TarReader tar(std::move(source));
  Member member;
  std::string key;
  while (true) {
    SLUICE_TRY(const bool found, tar.next(member));
    if (!found) break;
    const auto name = split_name(member.name);
    if (member.kind != MemberKind::kFile || !name) {
      ++listing.left_out;
      continue;
    }
    if (listing.members++ == 0 || name->key != key) {
      key = name->key;
      ++listing.samples;
      if (with_keys) listing.keys.push_back(key);
    }
    listing.payload += member.size;
    ++listing.extensions[std::string(name->extension)];
  }
  listing.bytes = tar.offset();
  return listing;
}

base::Result<VerifyReport> verify(const VerifyOptions& options) {
  if (options.urls.empty()) return base::fail(Code::kInvalidArgument, "no shards to verify");
  std::vector<VerifyReport> reports(options.urls.size());
  std::vector<std::vector<SamplePrint>> prints(options.urls.size());
  base::ThreadPool pool("sluice-verify", options.workers > 0 ? static_cast<std::size_t>(options.workers)
                                                             : base::available_processors());
  FolderSizes sizes;
  std::mutex mutex;
  std::int64_t done = 0;
  base::parallel_for(pool, options.urls.size(), [&](std::size_t i) {
    ShardCheck(options.urls[i], options, sizes, reports[i], options.duplicates ? &prints[i] : nullptr).run();
    std::lock_guard lock(mutex);
    ++done;
    if (options.progress) options.progress(done, static_cast<std::int64_t>(options.urls.size()));
  });
  VerifyReport total;
  std::set<std::string_view> seen;
  for (const std::string& url : options.urls)
    if (!seen.insert(url).second)
      total.problems.push_back(
          {url, url + ": listed more than once: each of its samples would come as often"});
  for (VerifyReport& report : reports) {
    total.shards += report.shards;
    total.unsummed += report.unsummed;
    total.samples += report.samples;
    total.members += report.members;
    total.bytes += report.bytes;
    std::move(report.problems.begin(), report.problems.end(), std::back_inserter(total.problems));
  }
  if (options.duplicates) report_duplicates(options, std::move(prints), total);
  return total;
}

}  // namespace sluice::data
