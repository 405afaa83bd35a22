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
    %17, %18 = "stablehlo.rng_bit_generator"(%arg1) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2x4x64xui32>)
    %19 = "stablehlo.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %20 = "stablehlo.dot_general"(%arg0, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %21 = "stablehlo.multiply"(%20, %1) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %22 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<2x4x64x64xi32>
    %23 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x4x64x64xi32>
    %24 = "stablehlo.compare"(%23, %22) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<2x4x64x64xi32>, tensor<2x4x64x64xi32>) -> tensor<2x4x64x64xi1>
    %25 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<2x4x64x64xf32>} : () -> tensor<2x4x64x64xf32>
    %26 = "stablehlo.select"(%24, %21, %25) : (tensor<2x4x64x64xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %28 = "stablehlo.reduce"(%26, %3) ({
    ^bb0(%b4: tensor<f32>, %b5: tensor<f32>):
      %27 = "stablehlo.maximum"(%b4, %b5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%27) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %29 = "stablehlo.broadcast_in_dim"(%28) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %30 = "stablehlo.subtract"(%26, %29) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %31 = "stablehlo.exponential"(%30) : (tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %33 = "stablehlo.reduce"(%31, %9) ({
    ^bb0(%b6: tensor<f32>, %b7: tensor<f32>):
      %32 = "stablehlo.add"(%b6, %b7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%32) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %34 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x4x64x64xui32>
    %35 = "stablehlo.constant"() {value = dense<2654435769> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %36 = "stablehlo.multiply"(%34, %35) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %37 = "stablehlo.slice"(%18) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 2, 4, 64>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x4x64xui32>) -> tensor<1x2x4x64xui32>
    %38 = "stablehlo.reshape"(%37) : (tensor<1x2x4x64xui32>) -> tensor<2x4x64xui32>
    %39 = "stablehlo.broadcast_in_dim"(%38) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xui32>) -> tensor<2x4x64x64xui32>
    %40 = "stablehlo.add"(%36, %39) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %41 = "stablehlo.slice"(%18) {start_indices = array<i64: 1, 0, 0, 0>, limit_indices = array<i64: 2, 2, 4, 64>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x4x64xui32>) -> tensor<1x2x4x64xui32>
    %42 = "stablehlo.reshape"(%41) : (tensor<1x2x4x64xui32>) -> tensor<2x4x64xui32>
    %43 = "stablehlo.broadcast_in_dim"(%42) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xui32>) -> tensor<2x4x64x64xui32>
    %44 = "stablehlo.constant"() {value = dense<16> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %45 = "stablehlo.shift_right_logical"(%40, %44) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %46 = "stablehlo.xor"(%40, %45) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %47 = "stablehlo.constant"() {value = dense<2146121005> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %48 = "stablehlo.multiply"(%46, %47) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %49 = "stablehlo.constant"() {value = dense<15> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %50 = "stablehlo.shift_right_logical"(%48, %49) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %51 = "stablehlo.xor"(%48, %50) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %52 = "stablehlo.xor"(%51, %43) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %53 = "stablehlo.constant"() {value = dense<2221713035> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %54 = "stablehlo.multiply"(%52, %53) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %55 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %56 = "stablehlo.subtract"(%55, %19) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %57 = "stablehlo.constant"() {value = dense<16777216.0> : tensor<f32>} : () -> tensor<f32>
    %58 = "stablehlo.multiply"(%56, %57) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %59 = "stablehlo.ceil"(%58) : (tensor<f32>) -> tensor<f32>
    %60 = "stablehlo.convert"(%59) : (tensor<f32>) -> tensor<ui32>
    %61 = "stablehlo.broadcast_in_dim"(%60) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x4x64x64xui32>
    %62 = "stablehlo.constant"() {value = dense<8> : tensor<2x4x64x64xui32>} : () -> tensor<2x4x64x64xui32>
    %63 = "stablehlo.shift_right_logical"(%54, %62) : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xui32>
    %64 = "stablehlo.compare"(%63, %61) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<2x4x64x64xui32>, tensor<2x4x64x64xui32>) -> tensor<2x4x64x64xi1>
    %65 = "stablehlo.divide"(%55, %56) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %66 = "stablehlo.compare"(%56, %9) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %67 = "stablehlo.select"(%66, %9, %65) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %68 = "stablehlo.constant"() {value = dense<0.0> : tensor<2x4x64x64xf32>} : () -> tensor<2x4x64x64xf32>
    %69 = "stablehlo.broadcast_in_dim"(%67) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x4x64x64xf32>
    %70 = "stablehlo.multiply"(%31, %69) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %71 = "stablehlo.select"(%64, %70, %68) : (tensor<2x4x64x64xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %72 = "stablehlo.dot_general"(%71, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %73 = "stablehlo.broadcast_in_dim"(%33) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %74 = "stablehlo.divide"(%72, %73) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %75 = "stablehlo.log"(%33) : (tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %76 = "stablehlo.add"(%28, %75) : (tensor<2x4x64xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    "func.return"(%14, %16, %74, %76, %arg1) : (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2xui64>) -> ()
  }
}
