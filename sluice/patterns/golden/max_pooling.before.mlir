module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>) -> (tensor<8x4x16x16xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %5 = "stablehlo.reduce_window"(%arg0, %0) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %1 = "stablehlo.compare"(%b0, %b0) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = "stablehlo.compare"(%b0, %b1) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = "stablehlo.or"(%2, %1) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %4 = "stablehlo.select"(%3, %b0, %b1) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }) {window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<8x4x16x16xf32>
    %6 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<1024xi32>
    %7 = "stablehlo.reshape"(%6) : (tensor<1024xi32>) -> tensor<32x32xi32>
    %8 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64: 2, 3>} : (tensor<32x32xi32>) -> tensor<8x4x32x32xi32>
    %9 = "stablehlo.constant"() {value = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
    %24, %25 = "stablehlo.reduce_window"(%arg0, %8, %0, %9) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<i32>, %b4: tensor<f32>, %b5: tensor<i32>):
      %10 = "stablehlo.compare"(%b3, %b5) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %11 = "stablehlo.compare"(%b3, %b5) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %12 = "stablehlo.compare"(%b2, %b2) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %13 = "stablehlo.compare"(%b4, %b4) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %14 = "stablehlo.not"(%13) : (tensor<i1>) -> tensor<i1>
      %15 = "stablehlo.compare"(%b2, %b4) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %16 = "stablehlo.and"(%15, %11) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %17 = "stablehlo.compare"(%b2, %b4) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %18 = "stablehlo.or"(%17, %16) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %19 = "stablehlo.and"(%14, %18) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %20 = "stablehlo.or"(%14, %10) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %21 = "stablehlo.select"(%12, %20, %19) : (tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<i1>
      %22 = "stablehlo.select"(%21, %b2, %b4) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %23 = "stablehlo.select"(%21, %b3, %b5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%22, %23) : (tensor<f32>, tensor<i32>) -> ()
    }) {window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>} : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xi32>, tensor<f32>, tensor<i32>) -> (tensor<8x4x16x16xf32>, tensor<8x4x16x16xi32>)
    %26 = "stablehlo.convert"(%25) : (tensor<8x4x16x16xi32>) -> tensor<8x4x16x16xi64>
    "func.return"(%5) : (tensor<8x4x16x16xf32>) -> ()
  }
}
