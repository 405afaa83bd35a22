module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xf32>, %arg1: tensor<256xf32>) -> (tensor<128x256xf32>, tensor<128x1xf32>, tensor<128x1xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%arg0, %0) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %1 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<128x256xf32>, tensor<f32>) -> tensor<128xf32>
    %3 = "stablehlo.constant"() {value = dense<256.0> : tensor<128xf32>} : () -> tensor<128xf32>
    %4 = "stablehlo.divide"(%2, %3) : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x256xf32>
    %6 = "stablehlo.subtract"(%arg0, %5) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %7 = "stablehlo.multiply"(%6, %6) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %9 = "stablehlo.reduce"(%7, %0) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %8 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<128x256xf32>, tensor<f32>) -> tensor<128xf32>
    %10 = "stablehlo.divide"(%9, %3) : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
    %11 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %12 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<128xf32>
    %13 = "stablehlo.add"(%10, %12) : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
    %14 = "stablehlo.rsqrt"(%13) : (tensor<128xf32>) -> tensor<128xf32>
    %15 = "stablehlo.broadcast_in_dim"(%14) {broadcast_dimensions = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x256xf32>
    %16 = "stablehlo.multiply"(%6, %15) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %17 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 1>} : (tensor<256xf32>) -> tensor<128x256xf32>
    %18 = "stablehlo.multiply"(%16, %17) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %19 = "stablehlo.reshape"(%4) : (tensor<128xf32>) -> tensor<128x1xf32>
    %20 = "stablehlo.reshape"(%14) : (tensor<128xf32>) -> tensor<128x1xf32>
    "func.return"(%18, %19, %20) : (tensor<128x256xf32>, tensor<128x1xf32>, tensor<128x1xf32>) -> ()
  }
}
