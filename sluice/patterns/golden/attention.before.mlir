module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x64x64xf32>, %arg1: tensor<2xui64>) -> (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2xui64>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %1 = "stablehlo.constant"() {value = dense<0.125> : tensor<2x4x64x64xf32>} : () -> tensor<2x4x64x64xf32>
    %2 = "stablehlo.multiply"(%0, %1) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %3 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %5 = "stablehlo.reduce"(%2, %3) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %4 = "stablehlo.maximum"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %7 = "stablehlo.subtract"(%2, %6) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %8 = "stablehlo.exponential"(%7) : (tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %11 = "stablehlo.reduce"(%8, %9) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %10 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %12 = "stablehlo.dot_general"(%8, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %13 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %14 = "stablehlo.divide"(%12, %13) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %15 = "stablehlo.log"(%11) : (tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %16 = "stablehlo.add"(%5, %15) : (tensor<2x4x64xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %17 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %18 = "stablehlo.reshape"(%17) : (tensor<1xui64>) -> tensor<ui64>
    %19 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 1>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %20 = "stablehlo.reshape"(%19) : (tensor<1xui64>) -> tensor<ui64>
    %21 = "stablehlo.convert"(%20) : (tensor<ui64>) -> tensor<ui32>
    %22 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
    %23 = "stablehlo.add"(%21, %22) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %24 = "stablehlo.constant"() {value = dense<32> : tensor<ui64>} : () -> tensor<ui64>
    %25 = "stablehlo.shift_right_logical"(%20, %24) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %26 = "stablehlo.convert"(%25) : (tensor<ui64>) -> tensor<ui32>
    %27 = "stablehlo.shift_right_logical"(%18, %24) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %28 = "stablehlo.convert"(%27) : (tensor<ui64>) -> tensor<ui32>
    %29 = "stablehlo.convert"(%18) : (tensor<ui64>) -> tensor<ui32>
    %30 = "stablehlo.constant"() {value = dense<17> : tensor<ui32>} : () -> tensor<ui32>
    %31 = "stablehlo.shift_right_logical"(%26, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %32 = "stablehlo.xor"(%26, %31) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %33 = "stablehlo.constant"() {value = dense<3982152891> : tensor<ui32>} : () -> tensor<ui32>
    %34 = "stablehlo.multiply"(%32, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %35 = "stablehlo.constant"() {value = dense<11> : tensor<ui32>} : () -> tensor<ui32>
    %36 = "stablehlo.shift_right_logical"(%34, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %37 = "stablehlo.xor"(%34, %36) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %38 = "stablehlo.constant"() {value = dense<2890668881> : tensor<ui32>} : () -> tensor<ui32>
    %39 = "stablehlo.multiply"(%37, %38) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %40 = "stablehlo.constant"() {value = dense<15> : tensor<ui32>} : () -> tensor<ui32>
    %41 = "stablehlo.shift_right_logical"(%39, %40) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %42 = "stablehlo.xor"(%39, %41) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %43 = "stablehlo.constant"() {value = dense<830770091> : tensor<ui32>} : () -> tensor<ui32>
    %44 = "stablehlo.multiply"(%42, %43) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %45 = "stablehlo.constant"() {value = dense<14> : tensor<ui32>} : () -> tensor<ui32>
    %46 = "stablehlo.shift_right_logical"(%44, %45) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %47 = "stablehlo.xor"(%44, %46) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %48 = "stablehlo.xor"(%29, %47) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %49 = "stablehlo.constant"() {value = dense<2654435769> : tensor<ui32>} : () -> tensor<ui32>
    %50 = "stablehlo.multiply"(%23, %49) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %51 = "stablehlo.add"(%28, %50) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %52 = "stablehlo.shift_right_logical"(%51, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %53 = "stablehlo.xor"(%51, %52) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %54 = "stablehlo.multiply"(%53, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %55 = "stablehlo.shift_right_logical"(%54, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %56 = "stablehlo.xor"(%54, %55) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %57 = "stablehlo.multiply"(%56, %38) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %58 = "stablehlo.shift_right_logical"(%57, %40) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %59 = "stablehlo.xor"(%57, %58) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %60 = "stablehlo.multiply"(%59, %43) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %61 = "stablehlo.shift_right_logical"(%60, %45) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %62 = "stablehlo.xor"(%60, %61) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %63 = "stablehlo.xor"(%62, %47) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %64 = "stablehlo.add"(%48, %63) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %65 = "stablehlo.constant"() {value = dense<2221713035> : tensor<ui32>} : () -> tensor<ui32>
    %66 = "stablehlo.multiply"(%64, %65) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %67 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x2x4x64xui32>
    %68 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<2x2x4x64xui32>
    %69 = "stablehlo.constant"() {value = dense<64> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %70 = "stablehlo.multiply"(%68, %69) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %71 = "stablehlo.add"(%67, %70) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %72 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x2x4x64xui32>
    %73 = "stablehlo.constant"() {value = dense<256> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %74 = "stablehlo.multiply"(%72, %73) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %75 = "stablehlo.add"(%71, %74) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %76 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2x2x4x64xui32>
    %77 = "stablehlo.constant"() {value = dense<512> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %78 = "stablehlo.multiply"(%76, %77) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %79 = "stablehlo.add"(%75, %78) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %80 = "stablehlo.broadcast_in_dim"(%48) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x4x64xui32>
    %81 = "stablehlo.xor"(%79, %80) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %82 = "stablehlo.constant"() {value = dense<17> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %83 = "stablehlo.shift_right_logical"(%81, %82) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %84 = "stablehlo.xor"(%81, %83) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %85 = "stablehlo.constant"() {value = dense<3982152891> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %86 = "stablehlo.multiply"(%84, %85) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %87 = "stablehlo.broadcast_in_dim"(%63) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x4x64xui32>
    %88 = "stablehlo.xor"(%86, %87) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %89 = "stablehlo.constant"() {value = dense<11> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %90 = "stablehlo.shift_right_logical"(%88, %89) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %91 = "stablehlo.xor"(%88, %90) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %92 = "stablehlo.constant"() {value = dense<2890668881> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %93 = "stablehlo.multiply"(%91, %92) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %94 = "stablehlo.broadcast_in_dim"(%66) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x4x64xui32>
    %95 = "stablehlo.xor"(%93, %94) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %96 = "stablehlo.constant"() {value = dense<15> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %97 = "stablehlo.shift_right_logical"(%95, %96) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %98 = "stablehlo.xor"(%95, %97) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %99 = "stablehlo.constant"() {value = dense<830770091> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %100 = "stablehlo.multiply"(%98, %99) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %101 = "stablehlo.constant"() {value = dense<14> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %102 = "stablehlo.shift_right_logical"(%100, %101) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %103 = "stablehlo.xor"(%100, %102) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %104 = "stablehlo.add"(%103, %81) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %105 = "stablehlo.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %106 = "stablehlo.dot_general"(%arg0, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %107 = "stablehlo.multiply"(%106, %1) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %108 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<2x4x64x64xi32>
    %109 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x4x64x64xi32>
    %110 = "stablehlo.compare"(%109, %108) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<2x4x64x64xi32>, tensor<2x4x64x64xi32>) -> tensor<2x4x64x64xi1>
    %111 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<2x4x64x64xf32>} : () -> tensor<2x4x64x64xf32>
    %112 = "stablehlo.select"(%110, %107, %111) : (tensor<2x4x64x64xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %114 = "stablehlo.reduce"(%112, %3) ({
    ^bb0(%b4: tensor<f32>, %b5: tensor<f32>):
      %113 = "stablehlo.maximum"(%b4, %b5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%113) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %115 = "stablehlo.broadcast_in_dim"(%114) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %116 = "stablehlo.subtract"(%112, %115) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %117 = "stablehlo.exponential"(%116) : (tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %119 = "stablehlo.reduce"(%117, %9) ({
    ^bb0(%b6: tensor<f32>, %b7: tensor<f32>):
      %118 = "stablehlo.add"(%b6, %b7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%118) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %120 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x4x64x64xui32>
    %121 = "stablehlo.constant"() {value = dense<2654435769> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %122 = "stablehlo.multiply"(%120, %121) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %123 = "stablehlo.slice"(%104) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 2, 4, 64>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x4x64xui32>) -> tensor<1x2x4x64xui32>
    %124 = "stablehlo.reshape"(%123) : (tensor<1x2x4x64xui32>) -> tensor<2x4x64xui32>
    %125 = "stablehlo.broadcast_in_dim"(%124) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xui32>) -> tensor<2x4x64x64xui32>
    %126 = "stablehlo.add"(%122, %125) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %127 = "stablehlo.slice"(%104) {start_indices = array<i64: 1, 0, 0, 0>, limit_indices = array<i64: 2, 2, 4, 64>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x4x64xui32>) -> tensor<1x2x4x64xui32>
    %128 = "stablehlo.reshape"(%127) : (tensor<1x2x4x64xui32>) -> tensor<2x4x64xui32>
    %129 = "stablehlo.broadcast_in_dim"(%128) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xui32>) -> tensor<2x4x64x64xui32>
    %130 = "stablehlo.constant"() {value = dense<16> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %131 = "stablehlo.shift_right_logical"(%126, %130) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %132 = "stablehlo.xor"(%126, %131) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %133 = "stablehlo.constant"() {value = dense<2146121005> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %134 = "stablehlo.multiply"(%132, %133) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %135 = "stablehlo.constant"() {value = dense<15> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %136 = "stablehlo.shift_right_logical"(%134, %135) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %137 = "stablehlo.xor"(%134, %136) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %138 = "stablehlo.xor"(%137, %129) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %139 = "stablehlo.constant"() {value = dense<2221713035> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %140 = "stablehlo.multiply"(%138, %139) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %141 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %142 = "stablehlo.subtract"(%141, %105) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %143 = "stablehlo.constant"() {value = dense<16777216.0> : tensor<f32>} : () -> tensor<f32>
    %144 = "stablehlo.multiply"(%142, %143) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %145 = "stablehlo.ceil"(%144) : (tensor<f32>) -> tensor<f32>
    %146 = "stablehlo.convert"(%145) : (tensor<f32>) -> tensor<ui32>
    %147 = "stablehlo.broadcast_in_dim"(%146) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x4x64x64xui32>
    %148 = "stablehlo.constant"() {value = dense<8> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %149 = "stablehlo.shift_right_logical"(%140, %148) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %150 = "stablehlo.compare"(%149, %147) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xi1>
    %151 = "stablehlo.divide"(%141, %142) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %152 = "stablehlo.compare"(%142, %9) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %153 = "stablehlo.select"(%152, %9, %151) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %154 = "stablehlo.constant"() {value = dense<0.0> : tensor<2x4x64x64xf32>} : () -> tensor<2x4x64x64xf32>
    %155 = "stablehlo.broadcast_in_dim"(%153) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x4x64x64xf32>
    %156 = "stablehlo.multiply"(%117, %155) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %157 = "stablehlo.select"(%150, %156, %154) : (tensor<2x4x64x64xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %158 = "stablehlo.dot_general"(%157, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %159 = "stablehlo.broadcast_in_dim"(%119) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %160 = "stablehlo.divide"(%158, %159) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %161 = "stablehlo.log"(%119) : (tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %162 = "stablehlo.add"(%114, %161) : (tensor<2x4x64xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    "func.return"(%14, %16, %160, %162, %arg1) : (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2xui64>) -> ()
  }
}
