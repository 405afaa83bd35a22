module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6x8x4xf32>, %arg1: tensor<2xui64>) -> (tensor<2x6x8x4xf32>, tensor<2x6x8xf32>, tensor<2xui64>) {
    %0 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %1 = "stablehlo.reshape"(%0) : (tensor<1xui64>) -> tensor<ui64>
    %2 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 1>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %3 = "stablehlo.reshape"(%2) : (tensor<1xui64>) -> tensor<ui64>
    %4 = "stablehlo.convert"(%3) : (tensor<ui64>) -> tensor<ui32>
    %5 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
    %6 = "stablehlo.add"(%4, %5) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %7 = "stablehlo.constant"() {value = dense<32> : tensor<ui64>} : () -> tensor<ui64>
    %8 = "stablehlo.shift_right_logical"(%3, %7) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %9 = "stablehlo.convert"(%8) : (tensor<ui64>) -> tensor<ui32>
    %10 = "stablehlo.shift_right_logical"(%1, %7) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %11 = "stablehlo.convert"(%10) : (tensor<ui64>) -> tensor<ui32>
    %12 = "stablehlo.convert"(%1) : (tensor<ui64>) -> tensor<ui32>
    %13 = "stablehlo.constant"() {value = dense<17> : tensor<ui32>} : () -> tensor<ui32>
    %14 = "stablehlo.shift_right_logical"(%9, %13) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %15 = "stablehlo.xor"(%9, %14) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %16 = "stablehlo.constant"() {value = dense<3982152891> : tensor<ui32>} : () -> tensor<ui32>
    %17 = "stablehlo.multiply"(%15, %16) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %18 = "stablehlo.constant"() {value = dense<11> : tensor<ui32>} : () -> tensor<ui32>
    %19 = "stablehlo.shift_right_logical"(%17, %18) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %20 = "stablehlo.xor"(%17, %19) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %21 = "stablehlo.constant"() {value = dense<2890668881> : tensor<ui32>} : () -> tensor<ui32>
    %22 = "stablehlo.multiply"(%20, %21) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %23 = "stablehlo.constant"() {value = dense<15> : tensor<ui32>} : () -> tensor<ui32>
    %24 = "stablehlo.shift_right_logical"(%22, %23) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %25 = "stablehlo.xor"(%22, %24) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %26 = "stablehlo.constant"() {value = dense<830770091> : tensor<ui32>} : () -> tensor<ui32>
    %27 = "stablehlo.multiply"(%25, %26) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %28 = "stablehlo.constant"() {value = dense<14> : tensor<ui32>} : () -> tensor<ui32>
    %29 = "stablehlo.shift_right_logical"(%27, %28) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %30 = "stablehlo.xor"(%27, %29) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %31 = "stablehlo.xor"(%12, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %32 = "stablehlo.constant"() {value = dense<2654435769> : tensor<ui32>} : () -> tensor<ui32>
    %33 = "stablehlo.multiply"(%6, %32) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %34 = "stablehlo.add"(%11, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %35 = "stablehlo.shift_right_logical"(%34, %13) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %36 = "stablehlo.xor"(%34, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %37 = "stablehlo.multiply"(%36, %16) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %38 = "stablehlo.shift_right_logical"(%37, %18) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %39 = "stablehlo.xor"(%37, %38) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %40 = "stablehlo.multiply"(%39, %21) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %41 = "stablehlo.shift_right_logical"(%40, %23) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %42 = "stablehlo.xor"(%40, %41) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %43 = "stablehlo.multiply"(%42, %26) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %44 = "stablehlo.shift_right_logical"(%43, %28) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %45 = "stablehlo.xor"(%43, %44) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %46 = "stablehlo.xor"(%45, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %47 = "stablehlo.add"(%31, %46) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %48 = "stablehlo.constant"() {value = dense<2221713035> : tensor<ui32>} : () -> tensor<ui32>
    %49 = "stablehlo.multiply"(%47, %48) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %50 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x2x6x8xui32>
    %51 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<2x2x6x8xui32>
    %52 = "stablehlo.constant"() {value = dense<8> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %53 = "stablehlo.multiply"(%51, %52) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %54 = "stablehlo.add"(%50, %53) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %55 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x2x6x8xui32>
    %56 = "stablehlo.constant"() {value = dense<48> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %57 = "stablehlo.multiply"(%55, %56) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %58 = "stablehlo.add"(%54, %57) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %59 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2x2x6x8xui32>
    %60 = "stablehlo.constant"() {value = dense<96> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %61 = "stablehlo.multiply"(%59, %60) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %62 = "stablehlo.add"(%58, %61) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %63 = "stablehlo.broadcast_in_dim"(%31) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x6x8xui32>
    %64 = "stablehlo.xor"(%62, %63) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %65 = "stablehlo.constant"() {value = dense<17> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %66 = "stablehlo.shift_right_logical"(%64, %65) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %67 = "stablehlo.xor"(%64, %66) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %68 = "stablehlo.constant"() {value = dense<3982152891> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %69 = "stablehlo.multiply"(%67, %68) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %70 = "stablehlo.broadcast_in_dim"(%46) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x6x8xui32>
    %71 = "stablehlo.xor"(%69, %70) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %72 = "stablehlo.constant"() {value = dense<11> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %73 = "stablehlo.shift_right_logical"(%71, %72) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %74 = "stablehlo.xor"(%71, %73) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %75 = "stablehlo.constant"() {value = dense<2890668881> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %76 = "stablehlo.multiply"(%74, %75) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %77 = "stablehlo.broadcast_in_dim"(%49) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x6x8xui32>
    %78 = "stablehlo.xor"(%76, %77) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %79 = "stablehlo.constant"() {value = dense<15> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %80 = "stablehlo.shift_right_logical"(%78, %79) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %81 = "stablehlo.xor"(%78, %80) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %82 = "stablehlo.constant"() {value = dense<830770091> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %83 = "stablehlo.multiply"(%81, %82) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %84 = "stablehlo.constant"() {value = dense<14> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %85 = "stablehlo.shift_right_logical"(%83, %84) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %86 = "stablehlo.xor"(%83, %85) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %87 = "stablehlo.add"(%86, %64) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %88 = "stablehlo.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %89 = "stablehlo.dot_general"(%arg0, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x8x4xf32>, tensor<2x6x8x4xf32>) -> tensor<2x6x8x8xf32>
    %90 = "stablehlo.constant"() {value = dense<0.5> : tensor<2x6x8x8xf32>} : () -> tensor<2x6x8x8xf32>
    %91 = "stablehlo.multiply"(%89, %90) : (tensor<2x6x8x8xf32>, tensor<2x6x8x8xf32>) -> tensor<2x6x8x8xf32>
    %92 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<2x6x8x8xi32>
    %93 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x6x8x8xi32>
    %94 = "stablehlo.compare"(%93, %92) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<2x6x8x8xi32>, tensor<2x6x8x8xi32>) -> tensor<2x6x8x8xi1>
    %95 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<2x6x8x8xf32>} : () -> tensor<2x6x8x8xf32>
    %96 = "stablehlo.select"(%94, %91, %95) : (tensor<2x6x8x8xi1>, tensor<2x6x8x8xf32>, tensor<2x6x8x8xf32>) -> tensor<2x6x8x8xf32>
    %97 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %99 = "stablehlo.reduce"(%96, %97) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %98 = "stablehlo.maximum"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%98) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x6x8x8xf32>, tensor<f32>) -> tensor<2x6x8xf32>
    %100 = "stablehlo.broadcast_in_dim"(%99) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x6x8xf32>) -> tensor<2x6x8x8xf32>
    %101 = "stablehlo.subtract"(%96, %100) : (tensor<2x6x8x8xf32>, tensor<2x6x8x8xf32>) -> tensor<2x6x8x8xf32>
    %102 = "stablehlo.exponential"(%101) : (tensor<2x6x8x8xf32>) -> tensor<2x6x8x8xf32>
    %103 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %105 = "stablehlo.reduce"(%102, %103) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %104 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%104) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x6x8x8xf32>, tensor<f32>) -> tensor<2x6x8xf32>
    %106 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x6x8x8xui32>
    %107 = "stablehlo.constant"() {value = dense<2654435769> : tensor<2x6x8x8xui32>} : () -> tensor<2x6x8x8xui32>
    %108 = "stablehlo.multiply"(%106, %107) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %109 = "stablehlo.slice"(%87) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 2, 6, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x6x8xui32>) -> tensor<1x2x6x8xui32>
    %110 = "stablehlo.reshape"(%109) : (tensor<1x2x6x8xui32>) -> tensor<2x6x8xui32>
    %111 = "stablehlo.broadcast_in_dim"(%110) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x6x8xui32>) -> tensor<2x6x8x8xui32>
    %112 = "stablehlo.add"(%108, %111) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %113 = "stablehlo.slice"(%87) {start_indices = array<i64: 1, 0, 0, 0>, limit_indices = array<i64: 2, 2, 6, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x6x8xui32>) -> tensor<1x2x6x8xui32>
    %114 = "stablehlo.reshape"(%113) : (tensor<1x2x6x8xui32>) -> tensor<2x6x8xui32>
    %115 = "stablehlo.broadcast_in_dim"(%114) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x6x8xui32>) -> tensor<2x6x8x8xui32>
    %116 = "stablehlo.constant"() {value = dense<16> : tensor<2x6x8x8xui32>} : () -> tensor<2x6x8x8xui32>
    %117 = "stablehlo.shift_right_logical"(%112, %116) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %118 = "stablehlo.xor"(%112, %117) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %119 = "stablehlo.constant"() {value = dense<2146121005> : tensor<2x6x8x8xui32>} : () -> tensor<2x6x8x8xui32>
    %120 = "stablehlo.multiply"(%118, %119) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %121 = "stablehlo.constant"() {value = dense<15> : tensor<2x6x8x8xui32>} : () -> tensor<2x6x8x8xui32>
    %122 = "stablehlo.shift_right_logical"(%120, %121) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %123 = "stablehlo.xor"(%120, %122) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %124 = "stablehlo.xor"(%123, %115) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %125 = "stablehlo.constant"() {value = dense<2221713035> : tensor<2x6x8x8xui32>} : () -> tensor<2x6x8x8xui32>
    %126 = "stablehlo.multiply"(%124, %125) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %127 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %128 = "stablehlo.subtract"(%127, %88) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %129 = "stablehlo.constant"() {value = dense<16777216.0> : tensor<f32>} : () -> tensor<f32>
    %130 = "stablehlo.multiply"(%128, %129) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %131 = "stablehlo.ceil"(%130) : (tensor<f32>) -> tensor<f32>
    %132 = "stablehlo.convert"(%131) : (tensor<f32>) -> tensor<ui32>
    %133 = "stablehlo.broadcast_in_dim"(%132) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x6x8x8xui32>
    %134 = "stablehlo.constant"() {value = dense<8> : tensor<2x6x8x8xui32>} : () -> tensor<2x6x8x8xui32>
    %135 = "stablehlo.shift_right_logical"(%126, %134) : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xui32>
    %136 = "stablehlo.compare"(%135, %133) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<2x6x8x8xui32>, tensor<2x6x8x8xui32>) -> tensor<2x6x8x8xi1>
    %137 = "stablehlo.divide"(%127, %128) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %138 = "stablehlo.compare"(%128, %103) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %139 = "stablehlo.select"(%138, %103, %137) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %140 = "stablehlo.constant"() {value = dense<0.0> : tensor<2x6x8x8xf32>} : () -> tensor<2x6x8x8xf32>
    %141 = "stablehlo.broadcast_in_dim"(%139) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x6x8x8xf32>
    %142 = "stablehlo.multiply"(%102, %141) : (tensor<2x6x8x8xf32>, tensor<2x6x8x8xf32>) -> tensor<2x6x8x8xf32>
    %143 = "stablehlo.select"(%136, %142, %140) : (tensor<2x6x8x8xi1>, tensor<2x6x8x8xf32>, tensor<2x6x8x8xf32>) -> tensor<2x6x8x8xf32>
    %144 = "stablehlo.dot_general"(%143, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x8x8xf32>, tensor<2x6x8x4xf32>) -> tensor<2x6x8x4xf32>
    %145 = "stablehlo.broadcast_in_dim"(%105) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x6x8xf32>) -> tensor<2x6x8x4xf32>
    %146 = "stablehlo.divide"(%144, %145) : (tensor<2x6x8x4xf32>, tensor<2x6x8x4xf32>) -> tensor<2x6x8x4xf32>
    %147 = "stablehlo.log"(%105) : (tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
    %148 = "stablehlo.add"(%99, %147) : (tensor<2x6x8xf32>, tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
    "func.return"(%146, %148, %arg1) : (tensor<2x6x8x4xf32>, tensor<2x6x8xf32>, tensor<2xui64>) -> ()
  }
}
