include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(kevin_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kevin)

foreach(component IN ITEMS kevin eval torch)
  set(target kevin_${component})
  if(component STREQUAL "kevin")
    set(target kevin)
  endif()
  if(TARGET ${target})
    set(data)
    get_target_property(sets ${target} INTERFACE_HEADER_SETS)
    if("data" IN_LIST sets)
      set(data FILE_SET data DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    endif()
    install(TARGETS ${target} EXPORT kevin-${component} FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${data})
    install(EXPORT kevin-${component} NAMESPACE kevin:: DESTINATION ${kevin_config_dir})
  endif()
endforeach()

configure_package_config_file(cmake/kevinConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/kevinConfig.cmake
  INSTALL_DESTINATION ${kevin_config_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/kevinConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kevinConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/kevinConfigVersion.cmake
  DESTINATION ${kevin_config_dir})
