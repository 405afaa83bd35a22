# The verb `sluice run` and those that work on a TPU's workers: a library of its own, without LibTorch, so that its tests
# are built in every preset.
sluice_room(cli_run
  SOURCES run_finders.cc run_verb.cc cloud/chip_holders.cc cloud/keep_plan.cc cloud/keep_verb.cc cloud/log_copy.cc cloud/reach_flags.cc
    cloud/task_verb.cc cloud/tpu_process_verbs.cc cloud/tpu_remote_verbs.cc cloud/tpu_ssh_verbs.cc
  DEPENDS base cli_verbs cloud estimate google pod provision provision_environment provision_remote
  LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json)
