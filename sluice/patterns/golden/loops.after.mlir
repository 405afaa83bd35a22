module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf32>, %arg1: tensor<f32>, %arg2: tensor<6xf32>) -> (tensor<6xf32>, tensor<f32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %43 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %44 = "stablehlo.constant"() {value = dense<5> : tensor<i64>} : () -> tensor<i64>
    %45 = "stablehlo.constant"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
    %63, %64, %65 = "stablehlo.while"(%43, %0, %arg2) ({
    ^bb0(%b0: tensor<i32>, %b1: tensor<f32>, %b2: tensor<6xf32>):
      %46 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
      %47 = "stablehlo.compare"(%b0, %46) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%47) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b3: tensor<i32>, %b4: tensor<f32>, %b5: tensor<6xf32>):
      %48 = "stablehlo.multiply"(%arg1, %b4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %49 = "stablehlo.constant"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
      %50 = "stablehlo.multiply"(%b3, %49) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %51 = "stablehlo.add"(%45, %50) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %52 = "stablehlo.dynamic_slice"(%arg0, %51) {slice_sizes = array<i64: 1>} : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
      %53 = "stablehlo.reshape"(%52) : (tensor<1xf32>) -> tensor<f32>
      %54 = "stablehlo.add"(%53, %48) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %55 = "stablehlo.reshape"(%54) : (tensor<f32>) -> tensor<1xf32>
      %56 = "stablehlo.convert"(%b3) : (tensor<i32>) -> tensor<i64>
      %57 = "stablehlo.constant"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
      %58 = "stablehlo.multiply"(%56, %57) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %59 = "stablehlo.add"(%44, %58) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %60 = "stablehlo.dynamic_update_slice"(%b5, %55, %59) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
      %61 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %62 = "stablehlo.add"(%b3, %61) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%62, %54, %60) : (tensor<i32>, tensor<f32>, tensor<6xf32>) -> ()
    }) : (tensor<i32>, tensor<f32>, tensor<6xf32>) -> (tensor<i32>, tensor<f32>, tensor<6xf32>)
    "func.return"(%65, %64) : (tensor<6xf32>, tensor<f32>) -> ()
  }
}
