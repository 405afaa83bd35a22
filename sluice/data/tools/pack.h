// Packing of images on a disk into shards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sluice/data/batch.h"
#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

// The folder whose name is an image's class, if the input is a folder.
enum class ClassFolder {
  kFirst,    // the one right below the input: in/cat/old/1.jpg has the class "cat"
  kDeepest,  // the one that holds the image: "old"; folders with the same name are one class
};

struct PackOptions {
  // A folder with one folder for each class (in alphabetical order: class 0, 1, …), searched to any depth; or
  // a list: see parse_list(). Other entries of a JSON line than file and class become a member `json`.
  // Relative images are taken from the list's folder. Classes are whole numbers, or names that are numbered
  // alphabetically.
  std::string input;
  ClassFolder class_folder = ClassFolder::kFirst;
  ShardOptions shards;
  bool shuffle = true;  // by `seed`; otherwise in the order of the list, or class by class
  std::uint64_t seed = 0;
  bool check = true;  // decodes each image, to find damaged ones now
};

struct PackReport {
  ShardReport shards;
  std::vector<std::string> classes;  // names, in the order of their numbers; empty for a list with numbers
  // Classes whose images are all in folders below the class's own, and these folders: perhaps the input is
  // one level too high ("train" and "test" are not classes).
  std::vector<std::pair<std::string, std::vector<std::string>>> nested;
  // With ClassFolder::kDeepest: folders below the input whose names, such as "train" and "test", mean
  // parts of a set that should stay separate, if there are two or more.
  std::vector<std::string> joined_parts;
  std::int64_t left_out = 0;  // not images by their extension, or links to nothing or to a folder above
  std::string first_left_out;
  std::map<std::string, std::int64_t> left_out_kinds;  // files of each extension, "link", "folder" …
};

// Writes the shards and, if classes have names, FOLDER/classes.txt with one a line. With shards.append,
// classes keep the numbers that this file gives them, and new ones follow.
base::Result<PackReport> pack(const PackOptions& options);

}  // namespace sluice::data
