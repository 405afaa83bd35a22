# OWNER/REPOSITORY and the hash (`sha512sum` of the archive of the tag) are filled in when a release is published.
vcpkg_from_github(
  OUT_SOURCE_PATH SOURCE_PATH
  REPO OWNER/REPOSITORY
  REF "v${VERSION}"
  SHA512 0
  HEAD_REF main
)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DSLUICE_TORCH=OFF
    -DSLUICE_TESTS=OFF
    -DSLUICE_WERROR=OFF
    -DSLUICE_JEMALLOC=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME sluice CONFIG_PATH lib/cmake/sluice)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
