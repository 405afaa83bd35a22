# The verbs `sluice top`, `sluice profile` and `sluice doctor`: a library of its own, without LibTorch.
set(CURSES_NEED_NCURSES ON)
set(CURSES_NEED_WIDE ON)
find_package(Curses REQUIRED)
sluice_room(cli_monitor
  SOURCES monitor/doctor_verb.cc monitor/host_flags.cc monitor/host_looks.cc monitor/profile_capture.cc monitor/profile_targets.cc monitor/profile_verb.cc
    monitor/top_screen.cc monitor/top_table.cc monitor/top_verb.cc
  DEPENDS base cli_cloud cli_run cli_verbs cloud doctor monitor pjrt pod profile provision_remote
  LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json ${CURSES_LIBRARIES}
  TESTS monitor/top_table_test.cc)
target_include_directories(sluice_cli_monitor PRIVATE ${CURSES_INCLUDE_DIRS})
# curses.h has macros of common names.
set_source_files_properties(monitor/top_screen.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
