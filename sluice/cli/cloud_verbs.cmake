# The verbs `sluice env`, `sluice tpu`, `sluice cost` and `sluice sweep`: a library of its own, without LibTorch.
sluice_room(cli_cloud
  SOURCES cloud/common.cc cloud/cost_verb.cc cloud/env_verb.cc cloud/sweep_verb.cc cloud/tpu_create_verb.cc cloud/tpu_verb.cc
  DEPENDS base cli_run cli_verbs google provision provision_environment
  LIBRARIES CLI11::CLI11)
