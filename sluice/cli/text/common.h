// What the verbs of `sluice text` share.
#pragma once

#include <functional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/cli/verb.h"
#include "sluice/text/tools/document_reader.h"

namespace sluice::cli {

inline constexpr char kTextsHelp[] =
    "Text, JSON lines or shards, plain or packed (gzip, zstd): paths, braces, globs, @file, several joined "
    "by '::'";

// How documents are found in files; what they say is in `input` when the verb runs.
void add_input_flags(CLI::App& app, text::InputOptions& input, bool sample_by);

// guarded() with the verb's name.
std::function<int()> guarded_text(std::string verb, std::function<base::Status()> body);

// tokenizer_verb.cc
Verb tokenizer_verb();
// encode_verbs.cc
Verb encode_verb();
Verb decode_verb();
// set_verbs.cc
Verb text_pack_verb();
Verb text_import_verb();
Verb text_export_verb();
Verb text_verify_verb();

}  // namespace sluice::cli
