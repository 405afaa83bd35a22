// The flags and the error handling that the verbs of `sluice text` share.
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

// Adds the flags that say how documents are found in files; `input` holds them when the verb runs.
void add_input_flags(CLI::App& app, text::InputOptions& input, bool sample_by);

// Returns guarded() with the verb's name.
std::function<int()> guarded_text(std::string verb, std::function<base::Status()> body);

// Defined in tokenizer_verb.cc.
Verb tokenizer_verb();
// Defined in encode_verbs.cc.
Verb encode_verb();
Verb decode_verb();
// Defined in set_verbs.cc.
Verb text_pack_verb();
Verb text_import_verb();
Verb text_export_verb();
Verb text_verify_verb();

}  // namespace sluice::cli
