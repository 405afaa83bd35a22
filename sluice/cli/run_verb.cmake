# The verb `sluice run`: a library of its own, without LibTorch, so that its tests are built in every preset.
find_package(CLI11 REQUIRED)
sluice_room(cli_run
  SOURCES run_verb.cc
  DEPENDS base pjrt pod
  LIBRARIES CLI11::CLI11)
