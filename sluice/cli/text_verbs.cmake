# The verbs `sluice text …`: a library of its own, without LibTorch.
sluice_room(cli_text
  SOURCES text/encode_verbs.cc text/set_verbs.cc text/tokenizer_verb.cc text/verbs.cc
  DEPENDS base cli_data cli_verbs data text text_tools
  LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json
  TESTS text/verbs_test.cc
  TEST_LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json)
