module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<5x8x64xf32>, %arg1: tensor<64x16xf32>, %arg2: tensor<8x16xf32>, %arg3: tensor<8x16xf32>, %arg4: tensor<5x8x16xf32>) -> (tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
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
    "func.return"(%36, %34, %35, %96, %94, %95) : (tensor<5x8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<5x8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> ()
  }
}
