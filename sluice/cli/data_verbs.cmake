# The verbs `sluice data …`: a library of its own, because CLI11 and nlohmann-json stay out of LibTorch's targets.
sluice_room(cli_data
  SOURCES data_cat_verb.cc data_common.cc data_cp_verb.cc data_index_verb.cc data_list_verbs.cc data_pack_verbs.cc data_stats_verb.cc
    data_verbs.cc
  DEPENDS base cli_verbs data data_tools
  LIBRARIES CLI11::CLI11
  TESTS data_verbs_test.cc
  TEST_LIBRARIES CLI11::CLI11)
