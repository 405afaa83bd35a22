# The verb `sluice run`: a library of its own, without LibTorch, so that its tests are built in every preset.
sluice_room(cli_run
  SOURCES run_verb.cc
  DEPENDS base cli_verbs estimate pod
  LIBRARIES CLI11::CLI11)
