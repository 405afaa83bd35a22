module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<5x8x64xf32>, %arg1: tensor<64x16xf32>, %arg2: tensor<8x16xf32>, %arg3: tensor<8x16xf32>, %arg4: tensor<5x8x16xf32>, %arg5: tensor<5x8x48xf32>, %arg6: tensor<48x16xf32>, %arg7: tensor<8x16xf32>, %arg8: tensor<5x8x16xf32>, %arg9: tensor<16x16xf32>, %arg10: tensor<5xi64>, %arg11: tensor<5x8x16xf32>, %arg12: tensor<8x16xf32>, %arg13: tensor<5x8x16xf32>) -> (tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<5x8x48xf32>, tensor<5x8x48xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<8x16xf32>) {
    %0 = "stablehlo.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<5x8x16xf32>} : () -> tensor<5x8x16xf32>
    %2 = "stablehlo.constant"() {value = dense<0.0> : tensor<5x8x64xf32>} : () -> tensor<5x8x64xf32>
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %33, %34, %35, %36, %37, %38 = "stablehlo.while"(%3, %arg2, %arg3, %1, %1, %2) ({
    ^bb0(%b0: tensor<i32>, %b1: tensor<8x16xf32>, %b2: tensor<8x16xf32>, %b3: tensor<5x8x16xf32>, %b4: tensor<5x8x16xf32>, %b5: tensor<5x8x64xf32>):
      %4 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
      %5 = "stablehlo.compare"(%b0, %4) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%5) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b6: tensor<i32>, %b7: tensor<8x16xf32>, %b8: tensor<8x16xf32>, %b9: tensor<5x8x16xf32>, %b10: tensor<5x8x16xf32>, %b11: tensor<5x8x64xf32>):
      %6 = "stablehlo.dot_general"(%b7, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
      %7 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %8 = "stablehlo.dynamic_slice"(%arg0, %b6, %7, %7) {slice_sizes = array<i64: 1, 8, 64>} : (tensor<5x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x64xf32>
      %9 = "stablehlo.reshape"(%8) : (tensor<1x8x64xf32>) -> tensor<8x64xf32>
      %10 = "stablehlo.add"(%9, %6) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
      %11 = "stablehlo.slice"(%10) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 8, 16>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %12 = "stablehlo.logistic"(%11) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %13 = "stablehlo.slice"(%10) {start_indices = array<i64: 0, 16>, limit_indices = array<i64: 8, 32>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %14 = "stablehlo.logistic"(%13) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %15 = "stablehlo.slice"(%10) {start_indices = array<i64: 0, 32>, limit_indices = array<i64: 8, 48>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %16 = "stablehlo.tanh"(%15) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %17 = "stablehlo.slice"(%10) {start_indices = array<i64: 0, 48>, limit_indices = array<i64: 8, 64>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %18 = "stablehlo.logistic"(%17) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %19 = "stablehlo.multiply"(%12, %16) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %20 = "stablehlo.multiply"(%14, %b8) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %21 = "stablehlo.add"(%20, %19) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %22 = "stablehlo.tanh"(%21) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %23 = "stablehlo.multiply"(%18, %22) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %24 = "stablehlo.reshape"(%23) : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
      %25 = "stablehlo.dynamic_update_slice"(%b9, %24, %b6, %7, %7) : (tensor<5x8x16xf32>, tensor<1x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x16xf32>
      %26 = "stablehlo.reshape"(%21) : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
      %27 = "stablehlo.dynamic_update_slice"(%b10, %26, %b6, %7, %7) : (tensor<5x8x16xf32>, tensor<1x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x16xf32>
      %28 = "stablehlo.concatenate"(%12, %14, %16, %18) {dimension = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x64xf32>
      %29 = "stablehlo.reshape"(%28) : (tensor<8x64xf32>) -> tensor<1x8x64xf32>
      %30 = "stablehlo.dynamic_update_slice"(%b11, %29, %b6, %7, %7) : (tensor<5x8x64xf32>, tensor<1x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x64xf32>
      %31 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %32 = "stablehlo.add"(%b6, %31) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%32, %23, %21, %25, %27, %30) : (tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>) -> ()
    }) : (tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>) -> (tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>)
    %39 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x16xf32>} : () -> tensor<8x16xf32>
    %93, %94, %95, %96 = "stablehlo.while"(%3, %39, %39, %2) ({
    ^bb0(%b12: tensor<i32>, %b13: tensor<8x16xf32>, %b14: tensor<8x16xf32>, %b15: tensor<5x8x64xf32>):
      %40 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
      %41 = "stablehlo.compare"(%b12, %40) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%41) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b16: tensor<i32>, %b17: tensor<8x16xf32>, %b18: tensor<8x16xf32>, %b19: tensor<5x8x64xf32>):
      %42 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
      %43 = "stablehlo.subtract"(%42, %b16) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %44 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %45 = "stablehlo.dynamic_slice"(%38, %43, %44, %44) {slice_sizes = array<i64: 1, 8, 64>} : (tensor<5x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x64xf32>
      %46 = "stablehlo.reshape"(%45) : (tensor<1x8x64xf32>) -> tensor<8x64xf32>
      %47 = "stablehlo.slice"(%46) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 8, 16>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %48 = "stablehlo.slice"(%46) {start_indices = array<i64: 0, 16>, limit_indices = array<i64: 8, 32>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %49 = "stablehlo.slice"(%46) {start_indices = array<i64: 0, 32>, limit_indices = array<i64: 8, 48>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %50 = "stablehlo.slice"(%46) {start_indices = array<i64: 0, 48>, limit_indices = array<i64: 8, 64>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %51 = "stablehlo.dynamic_slice"(%37, %43, %44, %44) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %52 = "stablehlo.reshape"(%51) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %53 = "stablehlo.tanh"(%52) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %54 = "stablehlo.dynamic_slice"(%arg4, %43, %44, %44) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %55 = "stablehlo.reshape"(%54) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %56 = "stablehlo.add"(%b17, %55) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %57 = "stablehlo.multiply"(%56, %50) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %58 = "stablehlo.multiply"(%53, %53) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %59 = "stablehlo.constant"() {value = dense<1.0> : tensor<8x16xf32>} : () -> tensor<8x16xf32>
      %60 = "stablehlo.subtract"(%59, %58) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %61 = "stablehlo.multiply"(%57, %60) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %62 = "stablehlo.add"(%b18, %61) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %63 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %64 = "stablehlo.subtract"(%43, %63) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %65 = "stablehlo.clamp"(%44, %64, %42) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %66 = "stablehlo.dynamic_slice"(%37, %65, %44, %44) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %67 = "stablehlo.reshape"(%66) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %68 = "stablehlo.compare"(%43, %44) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %69 = "stablehlo.select"(%68, %arg3, %67) : (tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %70 = "stablehlo.multiply"(%62, %69) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %71 = "stablehlo.multiply"(%62, %49) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %72 = "stablehlo.multiply"(%71, %47) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %73 = "stablehlo.subtract"(%59, %47) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %74 = "stablehlo.multiply"(%72, %73) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %75 = "stablehlo.multiply"(%70, %48) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %76 = "stablehlo.subtract"(%59, %48) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %77 = "stablehlo.multiply"(%75, %76) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %78 = "stablehlo.multiply"(%62, %47) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %79 = "stablehlo.multiply"(%49, %49) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %80 = "stablehlo.subtract"(%59, %79) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %81 = "stablehlo.multiply"(%78, %80) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %82 = "stablehlo.multiply"(%56, %53) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %83 = "stablehlo.multiply"(%82, %50) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %84 = "stablehlo.subtract"(%59, %50) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %85 = "stablehlo.multiply"(%83, %84) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %86 = "stablehlo.concatenate"(%74, %77, %81, %85) {dimension = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x64xf32>
      %87 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x64xf32>} : () -> tensor<8x64xf32>
      %88 = "stablehlo.dot_general"(%86, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
      %89 = "stablehlo.multiply"(%62, %48) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %90 = "stablehlo.reshape"(%86) : (tensor<8x64xf32>) -> tensor<1x8x64xf32>
      %91 = "stablehlo.dynamic_update_slice"(%b19, %90, %43, %44, %44) : (tensor<5x8x64xf32>, tensor<1x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x64xf32>
      %92 = "stablehlo.add"(%b16, %63) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%92, %88, %89, %91) : (tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x64xf32>) -> ()
    }) : (tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x64xf32>) -> (tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x64xf32>)
    %97 = "stablehlo.transpose"(%arg6) {permutation = array<i64: 1, 0>} : (tensor<48x16xf32>) -> tensor<16x48xf32>
    %127, %128, %129, %130 = "stablehlo.while"(%3, %arg7, %1, %2) ({
    ^bb0(%b20: tensor<i32>, %b21: tensor<8x16xf32>, %b22: tensor<5x8x16xf32>, %b23: tensor<5x8x64xf32>):
      %98 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
      %99 = "stablehlo.compare"(%b20, %98) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%99) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b24: tensor<i32>, %b25: tensor<8x16xf32>, %b26: tensor<5x8x16xf32>, %b27: tensor<5x8x64xf32>):
      %100 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %101 = "stablehlo.dynamic_slice"(%arg5, %b24, %100, %100) {slice_sizes = array<i64: 1, 8, 48>} : (tensor<5x8x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x48xf32>
      %102 = "stablehlo.reshape"(%101) : (tensor<1x8x48xf32>) -> tensor<8x48xf32>
      %103 = "stablehlo.dot_general"(%b25, %97) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x16xf32>, tensor<16x48xf32>) -> tensor<8x48xf32>
      %104 = "stablehlo.slice"(%103) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 8, 16>, strides = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x16xf32>
      %105 = "stablehlo.slice"(%102) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 8, 16>, strides = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x16xf32>
      %106 = "stablehlo.add"(%105, %104) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %107 = "stablehlo.logistic"(%106) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %108 = "stablehlo.slice"(%103) {start_indices = array<i64: 0, 16>, limit_indices = array<i64: 8, 32>, strides = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x16xf32>
      %109 = "stablehlo.slice"(%102) {start_indices = array<i64: 0, 16>, limit_indices = array<i64: 8, 32>, strides = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x16xf32>
      %110 = "stablehlo.add"(%109, %108) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %111 = "stablehlo.logistic"(%110) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %112 = "stablehlo.slice"(%103) {start_indices = array<i64: 0, 32>, limit_indices = array<i64: 8, 48>, strides = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x16xf32>
      %113 = "stablehlo.multiply"(%107, %112) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %114 = "stablehlo.slice"(%102) {start_indices = array<i64: 0, 32>, limit_indices = array<i64: 8, 48>, strides = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x16xf32>
      %115 = "stablehlo.add"(%114, %113) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %116 = "stablehlo.tanh"(%115) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %117 = "stablehlo.subtract"(%b25, %116) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %118 = "stablehlo.multiply"(%117, %111) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %119 = "stablehlo.add"(%118, %116) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %120 = "stablehlo.reshape"(%119) : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
      %121 = "stablehlo.dynamic_update_slice"(%b26, %120, %b24, %100, %100) : (tensor<5x8x16xf32>, tensor<1x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x16xf32>
      %122 = "stablehlo.concatenate"(%107, %111, %116, %112) {dimension = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x64xf32>
      %123 = "stablehlo.reshape"(%122) : (tensor<8x64xf32>) -> tensor<1x8x64xf32>
      %124 = "stablehlo.dynamic_update_slice"(%b27, %123, %b24, %100, %100) : (tensor<5x8x64xf32>, tensor<1x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x64xf32>
      %125 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %126 = "stablehlo.add"(%b24, %125) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%126, %119, %121, %124) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>) -> ()
    }) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>) -> (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<5x8x64xf32>)
    %131 = "stablehlo.constant"() {value = dense<0.0> : tensor<5x8x48xf32>} : () -> tensor<5x8x48xf32>
    %180, %181, %182, %183 = "stablehlo.while"(%3, %39, %131, %131) ({
    ^bb0(%b28: tensor<i32>, %b29: tensor<8x16xf32>, %b30: tensor<5x8x48xf32>, %b31: tensor<5x8x48xf32>):
      %132 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
      %133 = "stablehlo.compare"(%b28, %132) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%133) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b32: tensor<i32>, %b33: tensor<8x16xf32>, %b34: tensor<5x8x48xf32>, %b35: tensor<5x8x48xf32>):
      %134 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
      %135 = "stablehlo.subtract"(%134, %b32) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %136 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %137 = "stablehlo.dynamic_slice"(%130, %135, %136, %136) {slice_sizes = array<i64: 1, 8, 64>} : (tensor<5x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x64xf32>
      %138 = "stablehlo.reshape"(%137) : (tensor<1x8x64xf32>) -> tensor<8x64xf32>
      %139 = "stablehlo.slice"(%138) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 8, 16>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %140 = "stablehlo.slice"(%138) {start_indices = array<i64: 0, 16>, limit_indices = array<i64: 8, 32>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %141 = "stablehlo.slice"(%138) {start_indices = array<i64: 0, 32>, limit_indices = array<i64: 8, 48>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %142 = "stablehlo.slice"(%138) {start_indices = array<i64: 0, 48>, limit_indices = array<i64: 8, 64>, strides = array<i64: 1, 1>} : (tensor<8x64xf32>) -> tensor<8x16xf32>
      %143 = "stablehlo.dynamic_slice"(%arg8, %135, %136, %136) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %144 = "stablehlo.reshape"(%143) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %145 = "stablehlo.add"(%b33, %144) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %146 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %147 = "stablehlo.subtract"(%135, %146) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %148 = "stablehlo.clamp"(%136, %147, %134) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %149 = "stablehlo.dynamic_slice"(%129, %148, %136, %136) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %150 = "stablehlo.reshape"(%149) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %151 = "stablehlo.compare"(%135, %136) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %152 = "stablehlo.select"(%151, %arg7, %150) : (tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %153 = "stablehlo.subtract"(%152, %141) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %154 = "stablehlo.multiply"(%145, %153) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %155 = "stablehlo.constant"() {value = dense<1.0> : tensor<8x16xf32>} : () -> tensor<8x16xf32>
      %156 = "stablehlo.subtract"(%155, %140) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %157 = "stablehlo.multiply"(%145, %156) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %158 = "stablehlo.multiply"(%141, %141) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %159 = "stablehlo.subtract"(%155, %158) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %160 = "stablehlo.multiply"(%157, %159) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %161 = "stablehlo.multiply"(%160, %142) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %162 = "stablehlo.multiply"(%161, %139) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %163 = "stablehlo.subtract"(%155, %139) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %164 = "stablehlo.multiply"(%162, %163) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %165 = "stablehlo.multiply"(%154, %140) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %166 = "stablehlo.subtract"(%155, %140) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %167 = "stablehlo.multiply"(%165, %166) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %168 = "stablehlo.multiply"(%160, %139) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %169 = "stablehlo.concatenate"(%164, %167, %168) {dimension = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x48xf32>
      %170 = "stablehlo.dot_general"(%169, %arg6) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x48xf32>, tensor<48x16xf32>) -> tensor<8x16xf32>
      %171 = "stablehlo.multiply"(%145, %140) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %172 = "stablehlo.add"(%171, %170) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %173 = "stablehlo.concatenate"(%164, %167, %160) {dimension = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x48xf32>
      %174 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x48xf32>} : () -> tensor<8x48xf32>
      %175 = "stablehlo.reshape"(%173) : (tensor<8x48xf32>) -> tensor<1x8x48xf32>
      %176 = "stablehlo.dynamic_update_slice"(%b34, %175, %135, %136, %136) : (tensor<5x8x48xf32>, tensor<1x8x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x48xf32>
      %177 = "stablehlo.reshape"(%169) : (tensor<8x48xf32>) -> tensor<1x8x48xf32>
      %178 = "stablehlo.dynamic_update_slice"(%b35, %177, %135, %136, %136) : (tensor<5x8x48xf32>, tensor<1x8x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x48xf32>
      %179 = "stablehlo.add"(%b32, %146) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%179, %172, %176, %178) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x48xf32>, tensor<5x8x48xf32>) -> ()
    }) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x48xf32>, tensor<5x8x48xf32>) -> (tensor<i32>, tensor<8x16xf32>, tensor<5x8x48xf32>, tensor<5x8x48xf32>)
    %184 = "stablehlo.transpose"(%arg9) {permutation = array<i64: 1, 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %206, %207, %208 = "stablehlo.while"(%3, %arg12, %1) ({
    ^bb0(%b36: tensor<i32>, %b37: tensor<8x16xf32>, %b38: tensor<5x8x16xf32>):
      %185 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
      %186 = "stablehlo.compare"(%b36, %185) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%186) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b39: tensor<i32>, %b40: tensor<8x16xf32>, %b41: tensor<5x8x16xf32>):
      %187 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
      %188 = "stablehlo.subtract"(%187, %b39) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %189 = "stablehlo.dot_general"(%b40, %184) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
      %190 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %191 = "stablehlo.dynamic_slice"(%arg11, %188, %190, %190) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %192 = "stablehlo.reshape"(%191) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %193 = "stablehlo.add"(%192, %189) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %194 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x16xf32>} : () -> tensor<8x16xf32>
      %195 = "stablehlo.maximum"(%193, %194) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %196 = "stablehlo.dynamic_slice"(%arg10, %188) {slice_sizes = array<i64: 1>} : (tensor<5xi64>, tensor<i32>) -> tensor<1xi64>
      %197 = "stablehlo.reshape"(%196) : (tensor<1xi64>) -> tensor<i64>
      %198 = "stablehlo.broadcast_in_dim"(%197) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<8x16xi64>
      %199 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<8x16xi64>
      %200 = "stablehlo.compare"(%199, %198) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<8x16xi64>, tensor<8x16xi64>) -> tensor<8x16xi1>
      %201 = "stablehlo.select"(%200, %195, %b40) : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %202 = "stablehlo.reshape"(%201) : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
      %203 = "stablehlo.dynamic_update_slice"(%b41, %202, %188, %190, %190) : (tensor<5x8x16xf32>, tensor<1x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x16xf32>
      %204 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %205 = "stablehlo.add"(%b39, %204) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%205, %201, %203) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>) -> ()
    }) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>) -> (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>)
    %237, %238, %239 = "stablehlo.while"(%3, %39, %1) ({
    ^bb0(%b42: tensor<i32>, %b43: tensor<8x16xf32>, %b44: tensor<5x8x16xf32>):
      %209 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
      %210 = "stablehlo.compare"(%b42, %209) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%210) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b45: tensor<i32>, %b46: tensor<8x16xf32>, %b47: tensor<5x8x16xf32>):
      %211 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %212 = "stablehlo.dynamic_slice"(%208, %b45, %211, %211) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %213 = "stablehlo.reshape"(%212) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %214 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x16xf32>} : () -> tensor<8x16xf32>
      %215 = "stablehlo.dynamic_slice"(%arg13, %b45, %211, %211) {slice_sizes = array<i64: 1, 8, 16>} : (tensor<5x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
      %216 = "stablehlo.reshape"(%215) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
      %217 = "stablehlo.add"(%b46, %216) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %218 = "stablehlo.compare"(%213, %214) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xi1>
      %219 = "stablehlo.select"(%218, %214, %217) : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %220 = "stablehlo.dot_general"(%219, %arg9) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
      %221 = "stablehlo.dynamic_slice"(%arg10, %b45) {slice_sizes = array<i64: 1>} : (tensor<5xi64>, tensor<i32>) -> tensor<1xi64>
      %222 = "stablehlo.reshape"(%221) : (tensor<1xi64>) -> tensor<i64>
      %223 = "stablehlo.broadcast_in_dim"(%222) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<8x16xi64>
      %224 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<8x16xi64>
      %225 = "stablehlo.compare"(%224, %223) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<8x16xi64>, tensor<8x16xi64>) -> tensor<8x16xi1>
      %226 = "stablehlo.select"(%225, %220, %217) : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %227 = "stablehlo.dynamic_slice"(%arg10, %b45) {slice_sizes = array<i64: 1>} : (tensor<5xi64>, tensor<i32>) -> tensor<1xi64>
      %228 = "stablehlo.reshape"(%227) : (tensor<1xi64>) -> tensor<i64>
      %229 = "stablehlo.broadcast_in_dim"(%228) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<8x16xi64>
      %230 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<8x16xi64>
      %231 = "stablehlo.compare"(%230, %229) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<8x16xi64>, tensor<8x16xi64>) -> tensor<8x16xi1>
      %232 = "stablehlo.select"(%231, %219, %214) : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %233 = "stablehlo.reshape"(%232) : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
      %234 = "stablehlo.dynamic_update_slice"(%b47, %233, %b45, %211, %211) : (tensor<5x8x16xf32>, tensor<1x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x8x16xf32>
      %235 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %236 = "stablehlo.add"(%b45, %235) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%236, %226, %234) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>) -> ()
    }) : (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>) -> (tensor<i32>, tensor<8x16xf32>, tensor<5x8x16xf32>)
    "func.return"(%36, %34, %35, %96, %94, %95, %129, %128, %182, %183, %181, %208, %207, %239, %238) : (tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<5x8x48xf32>, tensor<5x8x48xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<5x8x16xf32>, tensor<8x16xf32>) -> ()
  }
}
