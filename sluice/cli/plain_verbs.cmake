# What the program `sluice` does itself, without LibTorch.
sluice_room(cli_plain
  SOURCES program.cc
  DEPENDS base cli_cloud cli_data cli_monitor cli_run cli_text cli_verbs
  LIBRARIES CLI11::CLI11)
target_compile_definitions(sluice_cli_plain PRIVATE SLUICE_VERSION="${PROJECT_VERSION}")
