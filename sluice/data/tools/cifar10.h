// The published CIFAR-10 archive (the binary version) as shards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/data/tools/shard_set.h"

namespace sluice::data {

// The address of the binary archive's page, and the archive's MD5 sum.
inline constexpr char kCifar10Page[] = "https://www.cs.toronto.edu/~kriz/cifar.html";
inline constexpr char kCifar10BinaryMd5[] = "c32a1d4ab5d03f1284b67883e8d87530";

struct Cifar10Options {
  // A path of cifar-10-binary.tar.gz, an http(s) address of it, or the data set's home page (which stands for
  // the archive next to it). The Python version is an error: it holds the same images as pickles.
  std::string source = kCifar10Page;
  std::string folder;
  std::string md5;  // expected; empty: the published sum
  std::int64_t shard_size = 2000;
  std::uint64_t seed = 0;  // for the order of the training samples; the test samples keep theirs
  bool overwrite = false;
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;
};

struct Cifar10Report {
  ShardReport train, test;
  std::vector<std::string> classes;
};

// Writes FOLDER/train-*.tar, FOLDER/test-*.tar (PNG and `cls`) and FOLDER/classes.txt.
base::Result<Cifar10Report> pack_cifar10(const Cifar10Options& options);

}  // namespace sluice::data
