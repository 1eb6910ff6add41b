# A Debian package: "cmake --build build --target package" makes build/hushvol_VERSION_ARCH.deb of what
# "cmake --install" installs. What a package alone needs, finish.cmake does to the copy that goes in.
#
# Programs, module and units name each other by their full paths, which the build has fixed: so the
# build must be one for /usr, and settings.cmake refuses others instead of moving the files.

set(HUSHVOL_PACKAGE_CONTACT "the hushvol authors <hushvol@localhost>" CACHE STRING
    "Name and address of who makes the Debian package")

set(package_out ${CMAKE_BINARY_DIR}/package-files)
file(READ ${CMAKE_SOURCE_DIR}/LICENSE license)
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(STRIP "${license}" license)
string(REPLACE "\n" "\n " license " ${license}")
configure_file(packaging/debian/copyright.in ${package_out}/copyright @ONLY)
configure_file(packaging/debian/changelog.in ${package_out}/changelog @ONLY)

install(FILES ${package_out}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES packaging/examples/hushvol.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
if(TARGET pam_hushvol)
  install(FILES packaging/pam-auth-update/hushvol
          DESTINATION ${CMAKE_INSTALL_DATADIR}/pam-configs)
endif()
# The program looks for its configuration here, whatever the prefix is.
install(DIRECTORY DESTINATION /etc/hushvol/conf.d)

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON) # some of the files are not below the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/packaging/debian/settings.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/packaging/debian/finish.cmake)
set(CPACK_HUSHVOL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_HUSHVOL_SANITIZE "${HUSHVOL_SANITIZE}")
set(CPACK_HUSHVOL_FILES ${package_out})

set(CPACK_PACKAGE_NAME hushvol)
set(CPACK_PACKAGE_CONTACT "${HUSHVOL_PACKAGE_CONTACT}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "disk in one encrypted file, shown decrypted through FUSE")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"hushvol keeps a whole disk in one encrypted container file or block device
and shows it decrypted as one file, which takes any file system: as root by
a loop device, as anybody else by fuse2fs. No kernel module is needed, and
no setuid program but fusermount3.
.
It opens its own containers and those of FreeBSD's GELI, by passphrases and
key files, at the command line, from /etc/fstab and at login, and closes
them with the session.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "fuse3, libpam-runtime (>= 1.1.3-2~)")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fuse2fs, e2fsprogs")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS udisks2)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/packaging/debian/postinst
    ${CMAKE_SOURCE_DIR}/packaging/debian/prerm
    ${CMAKE_SOURCE_DIR}/packaging/debian/postrm)
include(CPack)
