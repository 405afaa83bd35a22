#include "sluice/train/run/callback_list.h"

#include <exception>
#include <set>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::train {
namespace callback_list_detail {

std::string prefix_of(const Callback& callback) {
  return base::str(CallbackList::kPrefix, callback.name(), ".");
}

template <typename Hook>
void call_each(const Callbacks& callbacks, const char* hook_name, const Hook& hook) {
  for (const auto& callback : callbacks) {
    try {
      hook(*callback);
    } catch (const Error& error) {
      throw_error(error.code(),
                  base::str("callback '", callback->name(), "', ", hook_name, ": ", error.what()));
    } catch (const std::exception& error) {
      throw_error(Code::kUnknown,
                  base::str("callback '", callback->name(), "', ", hook_name, ": ", error.what()));
    }
  }
}

}  // namespace callback_list_detail

void CallbackList::call(const char* name, void (Callback::*hook)(Run&)) const {
  callback_list_detail::call_each(callbacks_, name, [&](Callback& callback) { (callback.*hook)(run_); });
}

void CallbackList::after_test(const metrics::Values& values) const {
  callback_list_detail::call_each(callbacks_, "after_test",
                                  [&](Callback& callback) { callback.after_test(run_, values); });
}

void CallbackList::load(const std::map<std::string, std::string>& states, const NamedValues& tensors) const {
  callback_list_detail::call_each(callbacks_, "load", [&](Callback& callback) {
    const auto state = states.find(callback.name());
    if (state != states.end()) callback.load(state->second);
  });
  std::set<std::string> strangers;
  for (const auto& [name, tensor] : tensors) strangers.insert(name);
  callback_list_detail::call_each(callbacks_, "load_tensors", [&](Callback& callback) {
    const std::string prefix = callback_list_detail::prefix_of(callback);
    NamedValues own;  // with the callback's own names
    for (const auto& [name, tensor] : tensors) {
      if (!base::starts_with(name, prefix)) continue;
      own.emplace_back(name.substr(prefix.size()), tensor);
      strangers.erase(name);
    }
    if (!own.empty()) callback.load_tensors(own);
  });
  if (!strangers.empty())
    base::warn("the checkpoint has tensors of callbacks that this run does not have, such as ",
               *strangers.begin(), ": it continues without them, from the weights in model.safetensors");
}

void CallbackList::put_states(std::map<std::string, std::string>& states) const {
  callback_list_detail::call_each(callbacks_, "state", [&](const Callback& callback) {
    if (std::string state = callback.state(); !state.empty()) states[callback.name()] = std::move(state);
  });
}

NamedValues CallbackList::tensors() const {
  NamedValues tensors;
  callback_list_detail::call_each(callbacks_, "tensors", [&](const Callback& callback) {
    for (const auto& [name, tensor] : callback.tensors())
      tensors.emplace_back(callback_list_detail::prefix_of(callback) + name, tensor);
  });
  return tensors;
}

}  // namespace sluice::train
