// Sources that are not local files.
#pragma once

#include <memory>
#include <string>

#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/store.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {

// Opens objects (cloud/store.h), http://… and https://… with several ranges in flight at once, checked as
// cloud/object_reader.h says. With a cache folder, an object that is read as a whole is kept there and read
// from there the next time.
base::Result<std::unique_ptr<Source>> open_remote_source(const std::string& url,
                                                         const SourceOptions& options);

// Opens pipe:COMMAND: the standard output of a command of /bin/sh. A status other than 0 is an error at the
// end of the bytes; a source that is destroyed earlier kills the command and its children.
base::Result<std::unique_ptr<Source>> open_pipe_source(const std::string& url, const SourceOptions& options);

// Returns the version of a shard's content, as SourceFacts has it.
std::string version_of(const cloud::Remote& remote);
std::string version_of(const cloud::ObjectFacts& object);
// Returns kDataLoss, unless the version is the expected one or none is expected.
base::Status check_version(const std::string& name, const std::string& found, const std::string& expected);

bool is_pipe(const std::string& url);        // pipe:…
bool is_on_network(const std::string& url);  // objects, http://…, https://…

}  // namespace sluice::data
