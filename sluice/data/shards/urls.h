// Lists of shards as users write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// Returns the strings that a pattern with braces stands for, in order: {000..639}, {0..9..2}, {9..0}, {a..e},
// {x,y}, nested. An end with leading zeros pads all numbers to the wider end. `{a}` stays as it is; a
// backslash takes the special meaning from the character after it. Unbalanced braces and more than 10 million
// strings are errors.
base::Result<std::vector<std::string>> expand_braces(std::string_view pattern);

// Returns the shards that a list stands for, in order: parts between `::`, `${X}` from the environment as
// WDS_X, braces, globs (* ? [ ]; the matches in alphabetical order) and `@file` (a list, one a line, `#`
// begins a comment; relative entries are taken from the list's folder; `pipe:` only after
// allow_pipe_in_lists() or with SLUICE_ALLOW_PIPE=1, else kPermissionDenied). The name of an existing file,
// and a match of a glob, is that file even if it looks like a pattern or an address. Globs work in buckets
// too (gs://bucket/train-*.tar, ** over folders). Every local file must exist: the error names its pattern.
base::Result<std::vector<std::string>> expand_urls(const std::string& list);

// Allows lists of shards to hold commands (`pipe:…`), for the rest of the process.
void allow_pipe_in_lists();

// Whether a name is `-` or has a scheme (gs://…, pipe:…), and so does not name a local file.
bool is_remote(std::string_view url);

}  // namespace sluice::data
