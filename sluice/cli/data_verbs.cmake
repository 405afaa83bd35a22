# The verbs `sluice data …`: a library of its own, because CLI11 and nlohmann-json stay out of LibTorch's targets.
sluice_room(cli_data
  SOURCES data/cat_verb.cc data/common.cc data/cp_verb.cc data/index_verb.cc data/list_verbs.cc data/pack_verbs.cc data/stats_verb.cc
    data/update_verb.cc data/verbs.cc
  DEPENDS base cli_verbs data data_tools
  LIBRARIES CLI11::CLI11
  TESTS data/verbs_test.cc
  TEST_LIBRARIES CLI11::CLI11)
