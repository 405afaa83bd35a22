// Programs with one collective each, and their runs, for tests.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sluice/pjrt/client.h"
#include "sluice/pjrt/testing/programs.h"

namespace sluice::pjrt::testing {

using Types = std::vector<stablehlo::Type>;
// The bytes of one array, the arrays of one replica, the arrays of all replicas.
using Array = std::string;
using Arrays = std::vector<Array>;

struct CollectiveText {
  std::string target = "sluice_all_reduce";
  std::string attributes = "op = \"sum\", program = 171 : i64, site = 0 : i64";
  bool in_place = false;
  int calls = 1;  // in sequence, each on the results of the previous one; "site = 0" counts up
};

inline std::string type_list(const Types& types) {
  std::vector<std::string> texts;
  for (const auto& type : types) texts.push_back(type.str());
  return base::join(texts, ", ");
}

// Returns @main(x0, x1, …) with the results of the calls. in_place: they use the memory of donated arguments.
inline std::string collective_program(const Types& operands, const Types& results,
                                      const CollectiveText& call = {}) {
  std::vector<std::string> arguments, aliases, in, out;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string donated = call.in_place ? base::str(" {tf.aliasing_output = ", i, " : i32}") : "";
    arguments.push_back(base::str("%x", i, ": ", operands[i].str(), donated));
    in.push_back(base::str("%x", i));
    aliases.push_back(base::str("#stablehlo.output_operand_alias<output_tuple_indices = [",
                                operands.size() > 1 ? base::str(i) : "", "], operand_index = ", i,
                                ", operand_tuple_indices = []>"));
  }
  std::string body;
  for (int k = 0; k < call.calls; ++k) {
    std::string attributes = call.attributes;
    if (const size_t at = attributes.find("site = 0"); at != std::string::npos) {
      attributes.replace(at, 8, base::str("site = ", k));
    }
    out.clear();
    for (size_t i = 0; i < results.size(); ++i) out.push_back(base::str("%r", k, "_", i));
    body +=
        base::str("%c", k, ":", results.size(), " = \"stablehlo.custom_call\"(", base::join(in, ", "),
                  ") {call_target_name = \"", call.target,
                  "\", api_version = 4 : i32, has_side_effect = true, backend_config = {", attributes, "}",
                  call.in_place ? ", output_operand_aliases = [" + base::join(aliases, ", ") + "]" : "",
                  "} : (", type_list(operands), ") -> (", type_list(results), ")\n");
    in.clear();
    for (size_t i = 0; i < results.size(); ++i) in.push_back(base::str("%c", k, "#", i));
  }
  return base::str("module { func.func @main(", base::join(arguments, ", "), ") -> (", type_list(results),
                   ") {\n", body, "\"func.return\"(", base::join(in, ", "), ") : (", type_list(results),
                   ") -> () } }\n");
}

// A compiled program with its arguments on all replicas.
struct Prepared {
  std::shared_ptr<Executable> program;
  std::vector<std::vector<Buffer>> buffers;
  base::Result<Launch> launch() {
    std::vector<std::vector<Buffer*>> pointers;
    for (auto& row : buffers) {
      pointers.emplace_back();
      for (Buffer& buffer : row) pointers.back().push_back(&buffer);
    }
    return program->execute(pointers);
  }
};

inline Prepared prepare(Client& client, const std::string& text, const Types& operands,
                        const std::vector<Arrays>& arguments, std::vector<int> device_ids = {}) {
  CompileOptions options;
  options.num_replicas = static_cast<int>(arguments.size());
  options.device_ids = std::move(device_ids);
  options.argument_types = operands;
  Prepared made{base::value_or_throw(client.compile(text, options)), {}};
  for (size_t r = 0; r < arguments.size(); ++r) {
    made.buffers.emplace_back();
    for (size_t i = 0; i < operands.size(); ++i) {
      made.buffers[r].push_back(
          base::value_or_throw(client.put(arguments[r][i].data(), operands[i], *made.program->devices()[r])));
    }
  }
  return made;
}

// Returns the results of all replicas; throws the first error.
inline std::vector<Arrays> results_of(const Launch& launch) {
  std::vector<Arrays> all;
  all.resize(launch.done.size());
  for (const auto& output : launch.outputs) {
    for (size_t r = 0; r < output.size(); ++r) {
      Array bytes(output[r].type().bytes(), '\0');
      base::value_or_throw(output[r].read(bytes.data(), bytes.size()));
      all[r].push_back(std::move(bytes));
    }
  }
  return all;
}

// Returns each replica's error, "" for none.
inline std::vector<std::string> errors_of(const Launch& launch) {
  std::vector<std::string> all(launch.done.size());
  for (const auto& output : launch.outputs) {
    for (size_t r = 0; r < output.size(); ++r) {
      if (const auto status = output[r].await(); !status) all[r] = status.error().what();
    }
  }
  return all;
}

template <typename T>
Array bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> numbers_of(const Array& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace sluice::pjrt::testing
