# Read by cpack before it does anything: is this build one that a package can be made of?
if(NOT CPACK_HUSHVOL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "this build is for ${CPACK_HUSHVOL_PREFIX}, and a package for /usr: "
                      "configure it with -DCMAKE_INSTALL_PREFIX=/usr and build again")
endif()
if(CPACK_HUSHVOL_SANITIZE)
  message(FATAL_ERROR "this build has sanitizers (${CPACK_HUSHVOL_SANITIZE}): "
                      "a package is made of one without")
endif()
